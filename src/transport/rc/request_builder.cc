#include "transport/rc/request_builder.h"

#include <algorithm>

#include "memory/sg_walk.h"
#include "transport/message_ops.h"

namespace verbena {

namespace {

void build_atomic(const SendWQE& wqe, TxPacket& out) {
  const bool swap = wqe.wr.op == SendOp::kCompareSwap;
  out.headers.bth.opcode = {Service::kRC, swap ? Op::kCmpSwap : Op::kFetchAdd};
  out.headers.atomic = {.virtual_address = wqe.wr.remote_address,
                        .r_key = wqe.wr.r_key,
                        .swap_or_add = wqe.wr.swap_or_add,
                        .compare = swap ? wqe.wr.compare : 0};
}

void build_flush(const SendWQE& wqe, TxPacket& out) {
  out.headers.bth.opcode = {Service::kRC, Op::kFlush};
  out.headers.feth = wqe.wr.flush;
  out.headers.reth = {.virtual_address = wqe.wr.remote_address,
                      .r_key = wqe.wr.r_key,
                      .dma_length = wqe.wr.flush_length};
}

}  // namespace

RequestBuilder::RequestBuilder(const EngineParts& parts, const RCLimits& limits)
    : qp_(parts.attributes), memory_(parts.memory), limits_(limits), copies_(parts.send_copies) {}

MemoryFault RequestBuilder::build(const SendWQE& wqe, Part& part, TxPacket& out) const {
  out.destination = nullptr;
  out.payload.clear();
  out.headers.bth.psn = part.psn;
  out.headers.bth.solicited_event = false;
  out.headers.bth.ack_req = true;
  out.headers.bth.takes_sack = limits_.retransmission == Retransmission::kSelectiveRepeat;
  out.headers.xrceth.xrc_srq = wqe.wr.xrc_srq;
  switch (wqe.wr.op) {
    case SendOp::kRDMARead: build_read(wqe, part, out); return MemoryFault::kNone;
    case SendOp::kCompareSwap:
    case SendOp::kFetchAdd: build_atomic(wqe, out); return MemoryFault::kNone;
    case SendOp::kFlush: build_flush(wqe, out); return MemoryFault::kNone;
    case SendOp::kAtomicWrite: return build_atomic_write(wqe, out);
    case SendOp::kSend:
    case SendOp::kSendWithImmediate:
    case SendOp::kSendWithInvalidate:
    case SendOp::kRDMAWrite:
    case SendOp::kRDMAWriteWithImmediate: return build_message(wqe, part, out);
    case SendOp::kBindMW:
    case SendOp::kLocalInvalidate: break;  // no packets
  }
  CHECK_UNREACHABLE();
}

// IBTA 9.7.3.1 would request the whole READ at once; to the responder a piece is a READ of its own.
void RequestBuilder::build_read(const SendWQE& wqe, const Part& part, TxPacket& out) const {
  const u64 offset = u64{wqe.first_psn.distance_to(part.psn)} * mtu();
  const u64 length = std::min<u64>(u64{part.psns} * mtu(), wqe.length_bytes - offset);
  out.headers.bth.opcode = {Service::kRC, Op::kRDMAReadRequest};
  out.headers.reth = {.virtual_address = wqe.wr.remote_address + offset,
                      .r_key = wqe.wr.r_key,
                      .dma_length = static_cast<u32>(length)};
}

MemoryFault RequestBuilder::build_atomic_write(const SendWQE& wqe, TxPacket& out) const {
  out.headers.bth.opcode = {Service::kRC, Op::kAtomicWrite};
  out.headers.reth = {
      .virtual_address = wqe.wr.remote_address, .r_key = wqe.wr.r_key, .dma_length = kAtomicBytes};
  return load(wqe, 0, kAtomicBytes, out.payload);
}

MemoryFault RequestBuilder::build_message(const SendWQE& wqe, Part& part, TxPacket& out) const {
  const u32 packet = wqe.first_psn.distance_to(part.psn);
  const u64 offset = u64{packet} * mtu();
  if (part.psns > 1 && load_train(wqe, offset, part.psns, out.payload)) {
    out.packets = part.psns;
  } else {
    part.psns = 1;
    const u32 length = static_cast<u32>(std::min<u64>(mtu(), wqe.length_bytes - offset));
    const MemoryFault fault = load(wqe, offset, length, out.payload);
    if (fault != MemoryFault::kNone) return fault;
  }
  const bool first = packet == 0, last = packet + 1 == wqe.packets;
  const MessageOps ops = message_ops(wqe.wr.op);
  BTH& bth = out.headers.bth;
  bth.opcode = {Service::kRC, first ? (last ? ops.only : ops.first) : last ? ops.last : ops.middle};
  bth.solicited_event = last && wqe.wr.solicited;
  out.headers.reth = {.virtual_address = wqe.wr.remote_address,
                      .r_key = wqe.wr.r_key,
                      .dma_length = wqe.length_bytes};
  out.headers.imm.value = wqe.wr.immediate;
  out.headers.ieth.r_key = wqe.wr.invalidate;
  return MemoryFault::kNone;
}

// Returns false if the data is not accessible in one piece.
bool RequestBuilder::load_train(const SendWQE& wqe, u64 offset, u32 packets,
                                PayloadList& out) const {
  if (wqe.inline_bytes != nullptr) return false;
  const std::optional<Bytes> payload =
      in_one_piece(memory_, qp_.pd, wqe.wr.sg_list, offset, u64{packets} * mtu());
  if (payload) out.add(*payload);
  return payload.has_value();
}

MemoryFault RequestBuilder::load(const SendWQE& wqe, u64 offset, u32 length,
                                 PayloadList& out) const {
  if (length == 0) return MemoryFault::kNone;
  if (wqe.inline_bytes != nullptr) {
    out.add({wqe.inline_bytes + offset, length});
    return MemoryFault::kNone;
  }
  if (copies_ != nullptr) copies_->read_for(wqe.first_psn.value());
  return gather(memory_, qp_.pd, wqe.wr.sg_list, offset, length, out, copies_);
}

}  // namespace verbena
