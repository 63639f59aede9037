#include "transport/uc/requester.h"

#include <algorithm>

#include "transport/local_operations.h"
#include "transport/message_ops.h"
#include "transport/send_payload.h"
#include "transport/uc/request_op.h"

namespace verbena {

UCRequester::UCRequester(const EngineParts& parts, EngineCounters& counters, RequesterFault& fault)
    : qp_(parts.attributes),
      memory_(parts.memory),
      copies_(parts.send_copies),
      sends_(parts, counters, fault) {}

PostError UCRequester::post(const SendWR& wr, Time now) {
  if (!is_uc_request(wr.op) && !is_local_operation(wr.op)) return PostError::kBadOpcode;
  return sends_.post(wr, now);
}

void UCRequester::on_state(QPState from) {
  sends_.on_state(from);
  if (qp_.state == QPState::kRTS && from == QPState::kRTR) next_psn_ = qp_.sq_psn;
  if (qp_.state == QPState::kReset || qp_.state == QPState::kError) offset_ = 0;
}

bool UCRequester::poll_packet(TxPacket& out) {
  const SendWQE* wqe = sends_.current();
  if (wqe == nullptr) return false;
  const u32 bytes_now = std::min(bytes(qp_.path_mtu), wqe->length_bytes - offset_);
  out.payload.clear();
  const MemoryFault fault =
      send_payload(memory_, qp_.pd, *wqe, offset_, bytes_now, out.payload, copies_);
  if (fault == MemoryFault::kLater) return false;
  if (fault != MemoryFault::kNone) {
    offset_ = 0;
    sends_.finish(WQEStatus::kLocalProtection);
    return false;
  }
  out.destination = nullptr;
  write_headers(*wqe, bytes_now, out.headers);
  next_psn_ = next_psn_.next();
  offset_ += bytes_now;
  if (offset_ == wqe->length_bytes) {
    offset_ = 0;
    sends_.finish(WQEStatus::kSuccess);
  }
  return true;
}

void UCRequester::write_headers(const SendWQE& wqe, u32 payload_bytes, PacketHeaders& out) {
  const SendRequest& wr = wqe.wr;
  const MessageOps ops = message_ops(wr.op);
  const bool first = offset_ == 0;
  const bool last = offset_ + payload_bytes == wqe.length_bytes;
  const Op op = first ? (last ? ops.only : ops.first) : (last ? ops.last : ops.middle);
  out.bth = {.opcode = {Service::kUC, op},
             // 9.2.3: only on the packet that makes the receiver's completion.
             .solicited_event = wr.solicited && last && wr.op != SendOp::kRDMAWrite,
             .mig_req = true,
             .pad_count = pad_count_for(payload_bytes),
             .p_key = qp_.p_key,
             .dest_qp = qp_.dest_qp,
             .psn = next_psn_};
  out.reth = {wr.remote_address, wr.r_key, wqe.length_bytes};
  out.imm = {wr.immediate};
}

}  // namespace verbena
