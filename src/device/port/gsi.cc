#include "device/port/gsi.h"

#include <algorithm>

#include "device/port/p_key_match.h"
#include "wire/ib/lid_address.h"
#include "wire/roce/source_port.h"

namespace verbena {
namespace {

constexpr Opcode kSendOnly{Service::kUD, Op::kSendOnly};

}  // namespace

GSI::Queues& GSI::queues() {
  if (queues_ == nullptr) queues_ = std::make_unique<Queues>();
  return *queues_;
}

void GSI::on_packet(const PacketView& packet, const IngressFrame& frame) {
  const PacketHeaders& headers = packet.headers;
  if (headers.bth.opcode != kSendOnly) {
    ++counters_.dropped_service;
    return;
  }
  if (packet.payload.size() != kMADSize) {
    ++counters_.port_rcv_errors;
    return;
  }
  if (!p_keys_match(kDefaultPKey, headers.bth.p_key)) {
    ++counters_.dropped_p_key;
    return;
  }
  if (headers.deth.q_key != kGSIQKey) {
    ++counters_.dropped_source;
    return;
  }
  if (queues().received.full()) {
    ++counters_.out_of_buffer;
    return;
  }
  GSIMessage& message = queues().received.push({.source = frame.source,
                                                .destination = frame.destination,
                                                .source_qp = headers.deth.source_qp,
                                                .mad = {}});
  std::ranges::copy(packet.payload, message.mad.begin());
}

bool GSI::poll(GSIMessage& out) {
  if (queues_ == nullptr || queues_->received.empty()) return false;
  out = queues_->received.pop();
  return true;
}

Status GSI::post(const AddressVector& path, const MADBytes& mad) {
  if (queues().sends.full()) return Status::kAgain;
  queues().sends.push({.path = path, .mad = mad});
  return Status::kOk;
}

bool GSI::poll_frame(EgressFrame& out) {
  if (queues_ == nullptr || queues_->sends.empty()) return false;
  const Send& send = queues_->sends.front();  // its place is not used again before the next post()
  (void)queues_->sends.pop();
  const PacketHeaders headers{
      .bth = {.opcode = kSendOnly, .mig_req = true, .dest_qp = kGSIQPN, .psn = next_psn_},
      .deth = {.q_key = kGSIQKey, .source_qp = kGSIQPN}};
  next_psn_ = next_psn_.next();
  headers.encode(out.headers);
  out.source_qp = kGSIQPN;
  out.headers_size = static_cast<u8>(headers.size());
  out.pad_count = 0;
  out.payload_is_stable = true;
  out.payload.clear();
  out.payload.add(send.mad);
  out.type = lid_of_address(send.path.destination) != 0 ? GIDType::kInfiniBand : GIDType::kRoCEv2;
  out.source = send.path.source;
  out.destination = send.path.destination;
  out.traffic_class = send.path.traffic_class;
  out.hop_limit = send.path.hop_limit;
  out.udp_source_port = source_port_of(kGSIQPN, kGSIQPN);
  return true;
}

}  // namespace verbena
