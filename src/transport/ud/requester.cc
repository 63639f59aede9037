#include "transport/ud/requester.h"

#include "transport/send_payload.h"

namespace verbena {
namespace {

constexpr u32 kOwnQKeyBit = 1u << 31;  // in a WR's Q_Key: send the QP's own. IBTA 10.2.5

u64 message_bytes(const SendWR& wr) {
  u64 total = 0;
  for (const SGE& sge : wr.sg_list) total += sge.length;
  return total;
}

}  // namespace

UDRequester::UDRequester(const EngineParts& parts, EngineCounters& counters, RequesterFault& fault)
    : qp_(parts.attributes),
      memory_(parts.memory),
      copies_(parts.send_copies),
      sends_(parts, counters, fault, Addressing::kOfRequest) {}

PostError UDRequester::post(const SendWR& wr, Time now) {
  if (wr.op != SendOp::kSend && wr.op != SendOp::kSendWithImmediate) return PostError::kBadOpcode;
  if (wr.destination.destination.is_zero()) return PostError::kBadDestination;
  if (message_bytes(wr) > bytes(qp_.path_mtu)) return PostError::kMessageTooLong;
  return sends_.post(wr, now);
}

void UDRequester::on_state(QPState from) {
  sends_.on_state(from);
  if (qp_.state == QPState::kRTS && from == QPState::kRTR) next_psn_ = qp_.sq_psn;
}

bool UDRequester::poll_packet(TxPacket& out) {
  const SendWQE* wqe = sends_.current();
  if (wqe == nullptr) return false;
  out.payload.clear();
  const MemoryFault fault =
      send_payload(memory_, qp_.pd, *wqe, 0, wqe->length_bytes, out.payload, copies_);
  if (fault == MemoryFault::kLater) return false;
  if (fault != MemoryFault::kNone) {
    sends_.finish(WQEStatus::kLocalProtection);
    return false;
  }
  out.destination = &wqe->ud->destination;
  write_headers(*wqe, out.headers);
  next_psn_ = next_psn_.next();
  sends_.finish(WQEStatus::kSuccess);
  return true;
}

void UDRequester::write_headers(const SendWQE& wqe, PacketHeaders& out) const {
  const SendRequest& wr = wqe.wr;
  const UDDestination& to = *wqe.ud;
  const bool immediate = wr.op == SendOp::kSendWithImmediate;
  out.bth = {.opcode = {Service::kUD, immediate ? Op::kSendOnlyWithImmediate : Op::kSendOnly},
             .solicited_event = wr.solicited,
             .mig_req = true,
             .pad_count = pad_count_for(wqe.length_bytes),
             .p_key = qp_.p_key,
             .dest_qp = to.dest_qp,
             .psn = next_psn_};
  out.deth = {(to.q_key.value & kOwnQKeyBit) != 0 ? qp_.q_key : to.q_key, qp_.qpn};
  out.imm = {wr.immediate};
}

}  // namespace verbena
