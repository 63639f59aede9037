#include "bench/micro/device_pair.h"

#include <cstring>

#include "base/check.h"
#include "wire/roce/icrc.h"

namespace bench {

using namespace verbena;

namespace {

constexpr u32 kDepth = 64;
constexpr PSN kFirstPSN{1000};

void must(Status status) { CHECK(status == Status::kOk); }

Port make_port(u32 index) {
  Port port;
  DeviceConfig config;
  config.gids.push_back({.gid = GID::from_ipv4(0x7f000001 + index)});
  config.active_mtu = MTU::k4096;
  config.first_qpn = QPN{0x100 * (index + 1)};
  config.path = {.window_packets = 1024, .window_bytes = 1u << 20, .min_probe_timeout = us(50)};
  port.device = std::make_unique<Device>(config);
  port.pd = *port.device->alloc_pd();
  port.cq = *port.device->create_cq(2 * kDepth, nullptr);
  port.memory.resize(DevicePair::kMemorySize);
  port.keys = *port.device->memory().register_mr(
      port.pd->id, port.memory.data(), port.memory.size(), port.address(),
      Access::kLocalWrite | Access::kRemoteWrite | AccessFlags(Access::kRemoteRead));
  return port;
}

QueuePair* make_qp(Port& port, u32 depth) {
  return *port.device->create_qp({.type = QPType::kRC,
                                  .pd = port.pd,
                                  .send_cq = port.cq,
                                  .receive_cq = port.cq,
                                  .send = {.depth = depth, .max_sge = 1},
                                  .receive = {.depth = depth, .max_sge = 1}});
}

// The QP made last.
void bring_up(Port& port, const Port& peer, Time now) {
  QueuePair* const qp = port.qps.back();
  QPModify change;
  change.set(QPField::kState).set(QPField::kPKeyIndex).set(QPField::kPort);
  change.set(QPField::kAccessFlags);
  change.state = QPState::kInit;
  change.remote_access = Access::kRemoteWrite | AccessFlags(Access::kRemoteRead);
  must(port.device->modify_qp(qp, change, now));

  QPModify rtr;
  rtr.state = QPState::kRTR;
  rtr.path.source = port.device->config().gids[0].gid;
  rtr.path.destination = peer.device->config().gids[0].gid;
  rtr.path_mtu = MTU::k4096;
  rtr.dest_qp = peer.device->attributes_of(peer.qps.back()).qpn;
  rtr.rq_psn = kFirstPSN;
  rtr.max_dest_rd_atomic = 4;
  rtr.min_rnr_timer = 5;
  rtr.set(QPField::kState).set(QPField::kAddressVector).set(QPField::kPathMTU);
  rtr.set(QPField::kDestQPN).set(QPField::kRQPSN).set(QPField::kMaxDestRdAtomic);
  must(port.device->modify_qp(qp, rtr.set(QPField::kMinRNRTimer), now));

  QPModify rts;
  rts.state = QPState::kRTS;
  rts.sq_psn = kFirstPSN;
  rts.ack_timeout = 20;
  rts.retry_count = rts.rnr_retry_count = 7;
  rts.max_rd_atomic = 4;
  rts.set(QPField::kState).set(QPField::kSQPSN).set(QPField::kTimeout);
  rts.set(QPField::kRetryCount).set(QPField::kRNRRetry).set(QPField::kMaxRdAtomic);
  must(port.device->modify_qp(qp, rts, now));
}

}  // namespace

DevicePair::DevicePair() : a(make_port(0)), b(make_port(1)), wire_(1 << 14) { connect(kDepth); }

void DevicePair::connect(u32 depth) {
  a.qps.push_back(make_qp(a, depth));
  b.qps.push_back(make_qp(b, depth));
  bring_up(a, b, now_);
  bring_up(b, a, now_);
}

SGE DevicePair::local(u32 length) const {
  return {.address = a.address(), .length = length, .l_key = a.keys.l_key};
}

SendWR DevicePair::one_sided(SendOp op, const SGE& local) const {
  SendWR wr;
  wr.op = op;
  wr.signaled = true;
  wr.sg_list = {&local, 1};
  wr.remote_address = b.address();
  wr.r_key = b.keys.r_key;
  return wr;
}

bool DevicePair::carry(Port& from, Port& to) {
  if (!from.device->poll_frame(now_, frame_)) return false;
  ++frames_;
  now_ = now_ + ns(1);
  std::size_t size = frame_.headers_size;
  std::memcpy(wire_.data(), frame_.headers.data(), size);
  for (u32 i = 0; i < frame_.payload.count; ++i) {
    const Bytes part = frame_.payload.parts[i];
    std::memcpy(wire_.data() + size, part.data(), part.size());
    size += part.size();
  }
  for (u32 i = 0; i < frame_.pad_count; ++i) wire_[size++] = 0;
  const u32 icrc = icrc_of({.source = frame_.source,
                            .destination = frame_.destination,
                            .udp_source_port = frame_.udp_source_port},
                           Bytes(wire_.data(), size));
  store_icrc(icrc, std::span<u8, kICRCSize>(wire_.data() + size, kICRCSize));
  to.device->on_frame({.source = frame_.source,
                       .destination = frame_.destination,
                       .udp_source_port = frame_.udp_source_port,
                       .traffic_class = frame_.traffic_class,
                       .hop_limit = frame_.hop_limit,
                       .identification_known = true,
                       .transport = Bytes(wire_.data(), size + kICRCSize)},
                      now_);
  return true;
}

u64 DevicePair::complete(const SendWR& wr) {
  next_qp_ = (next_qp_ + 1) % a.qps.size();
  CHECK(a.device->post_send(a.qps[next_qp_], wr, now_) == PostError::kOk);
  const u64 before = frames_;
  std::array<CQE, 1> cqe;
  while (a.device->poll_cq(a.cq, cqe) == 0) {
    bool any = false;
    while (carry(a, b)) any = true;
    while (carry(b, a)) any = true;
    CHECK(any);
  }
  CHECK(cqe[0].status == WQEStatus::kSuccess);
  return frames_ - before;
}

}  // namespace bench
