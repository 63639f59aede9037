// The ends of a host, which are QPs: how they are connected, the work posted to them, and its
// completions.
#include <algorithm>
#include <bit>
#include <utility>

#include "device/port/source_port.h"
#include "fabric/host.h"

namespace verbena::fabric {
namespace {

constexpr u32 kMostCQEs = 4096;
constexpr u64 kOfConnection = u64{1} << 32;  // in a wr_id: not of a flow

void must(Status status) { CHECK(status == Status::kOk); }

QPModify to_state(QPState state) {
  QPModify change;
  change.state = state;
  return change.set(QPField::kState);
}

}  // namespace

EndNumber Host::create_end(u32 sends, u32 receives) {
  const Result<QueuePair*> qp = device_.create_qp({.type = QPType::kRC,
                                                   .pd = pd_,
                                                   .send_cq = cq_,
                                                   .receive_cq = cq_,
                                                   .send = {.depth = sends, .max_sge = 1},
                                                   .receive = {.depth = receives, .max_sge = 1}});
  CHECK(qp.has_value());
  const std::size_t index = index_of(number_of(*qp));
  if (index >= connections_.size()) connections_.resize(index + 1);
  connections_[index] = {};
  connections_[index].qp = *qp;
  connections_[index].completions = sends + receives;
  completions_at_most_ += sends + receives;
  make_room_for_completions();
  return static_cast<EndNumber>(index);
}

// The CQ is as long as it has to be: most hosts of a large network have few QPs, and what they keep
// lies the closer together.
void Host::make_room_for_completions() {
  const u32 needed = std::min(kMostCQEs, std::bit_ceil(completions_at_most_));
  if (needed > device_.capacity_of(cq_)) must(device_.resize_cq(cq_, needed));
}

u16 Host::source_port_of(EndNumber end) const {
  const Connection& connection = connections_[end].connection;
  if (connection.source_port != 0) return connection.source_port;
  const u32 first = config_.device.first_qpn.value;
  return udp_source_port(config_.device, {}, QPN{first + end}, QPN{first + connection.peer_end});
}

void Host::connect(EndNumber end, const Connection& connection) {
  QueuePair* const qp = connections_[end].qp;
  connections_[end].connection = connection;
  u8& priority = connections_[end].connection.priority;
  if (channel_adapter_) priority = channel_adapter_->lane_of(priority);
  data_priorities_ |= bit(priority);

  QPModify init = to_state(QPState::kInit);
  init.remote_access = Access::kRemoteWrite;
  init.set(QPField::kPKeyIndex).set(QPField::kPort).set(QPField::kAccessFlags);
  must(device_.modify_qp(qp, init, domain_.now));

  QPModify rtr = to_state(QPState::kRTR);
  rtr.path.source = GID::from_ipv4(addresses_[node_]);
  rtr.path.destination = GID::from_ipv4(addresses_[connection.peer]);
  rtr.path.traffic_class = channel_adapter_ ? connection.priority : config_.traffic_class;
  rtr.path_mtu = config_.device.active_mtu;
  rtr.dest_qp = QPN{config_.device.first_qpn.value + connection.peer_end};
  rtr.set(QPField::kAddressVector).set(QPField::kPathMTU).set(QPField::kDestQPN);
  rtr.set(QPField::kRQPSN).set(QPField::kMaxDestRdAtomic).set(QPField::kMinRNRTimer);
  must(device_.modify_qp(qp, rtr, domain_.now));

  QPModify rts = to_state(QPState::kRTS);
  rts.ack_timeout = config_.ack_timeout;
  rts.retry_count = config_.retry_count;
  rts.rnr_retry_count = 7;  // for ever
  rts.set(QPField::kSQPSN).set(QPField::kTimeout).set(QPField::kRetryCount);
  rts.set(QPField::kRNRRetry).set(QPField::kMaxRdAtomic);
  must(device_.modify_qp(qp, rts, domain_.now));
}

void Host::destroy_end(EndNumber end) {
  connections_[end].paused = false;
  completions_at_most_ -= connections_[end].completions;
  must(device_.destroy_qp(connections_[end].qp));
}

QPN Host::peer_of(QPN qpn) const {
  const std::size_t index = index_of(qpn);
  if (index >= connections_.size()) return {};
  return QPN{config_.device.first_qpn.value + connections_[index].connection.peer_end};
}

std::optional<Rate> Host::rate_of(EndNumber end, Time now) const {
  std::optional<CongestionControl> control = device_.congestion_of(connections_[end].qp);
  return control ? std::optional(control->rate(now)) : std::nullopt;
}

Repairs Host::repairs() const {
  const EngineCounters counters = device_.counters().transport;
  return {.retransmissions = counters.retransmitted_packets,
          .timeouts = counters.local_ack_timeout_err};
}

u32 Host::packet_bytes() const {
  const DeviceConfig& device = config_.device;
  return device.packet_bytes != 0 ? device.packet_bytes : bytes(device.active_mtu);
}

// All messages but the last consist of whole packets.
u32 Host::messages_of(u64 bytes) const {
  const u32 most = kMessageBytes / packet_bytes() * packet_bytes();
  return static_cast<u32>(std::max<u64>(1, (bytes + most - 1) / most));
}

void Host::write(EndNumber end, u64 bytes, u32 flow) {
  const u32 most = kMessageBytes / packet_bytes() * packet_bytes();
  do {
    const u32 length = static_cast<u32>(std::min<u64>(bytes, most));
    bytes -= length;
    const SGE sge{.address = 0, .length = length, .l_key = keys_.l_key};
    SendWR wr;
    wr.wr_id = flow;
    wr.op = SendOp::kRDMAWrite;
    wr.signaled = bytes == 0;
    wr.sg_list = {&sge, 1};
    wr.r_key = connections_[end].connection.peer_key;
    post(wr, connections_[end].qp);
  } while (bytes != 0);
  take_from_pcie();
}

void Host::post(const SendWR& wr, QueuePair* qp) {
  const Time at = pcie_.post(wr, qp, domain_.now);
  if (pcie_.delays_posting()) domain_.events.add({at, EventKind::kPause, ports_[0].place});
}

// All that has reached the program and the NIC.
void Host::take_from_pcie() {
  pcie_.take_completions(domain_.now, [this](const CQE& cqe) { take(cqe); });
  if (!pcie_.take_postings(device_, domain_.now)) return;
  data_may_wait_ = true;
  settle();
}

// --- completions

// A message that fails takes the rest of its QP's with it.
void Host::take_failure(const CQE& cqe) {
  Open& open = connections_[index_of(cqe.qp)];
  if (std::exchange(open.failed, true) || (cqe.wr_id & kOfConnection) != 0) return;
  if (cqe.op != CompletionOp::kReceiveRDMAWithImmediate && !open.expects)
    failed_.push_back(static_cast<u32>(cqe.wr_id));
}

void Host::take(const CQE& cqe) {
  if (cqe.status != WQEStatus::kSuccess) return take_failure(cqe);
  const u32 number = static_cast<u32>(cqe.wr_id);
  if (cqe.op == CompletionOp::kReceiveRDMAWithImmediate) {
    expect(static_cast<EndNumber>(index_of(cqe.qp)), 1, number);
    messages_.push_back({.connection = number, .word = cqe.immediate, .arrived = true});
  } else if ((cqe.wr_id & kOfConnection) != 0) {
    messages_.push_back({.connection = number});
  } else {
    finished_.push_back(number);
  }
}

// --- messages

void Host::expect(EndNumber end, u32 messages, u32 connection) {
  connections_[end].expects = true;
  RecvWR wr;
  wr.wr_id = connection;
  for (u32 i = 0; i < messages; ++i)
    CHECK(device_.post_receive(connections_[end].qp, wr, domain_.now) == PostError::kOk);
}

void Host::send_message(EndNumber end, u32 bytes, u32 connection, u32 word) {
  const SGE sge{.address = 0, .length = bytes, .l_key = keys_.l_key};
  SendWR wr;
  wr.wr_id = connection | kOfConnection;
  wr.op = SendOp::kRDMAWriteWithImmediate;
  wr.signaled = true;
  wr.immediate = word;
  if (bytes != 0) wr.sg_list = {&sge, 1};
  wr.r_key = connections_[end].connection.peer_key;
  post(wr, connections_[end].qp);
  take_from_pcie();
}

}  // namespace verbena::fabric
