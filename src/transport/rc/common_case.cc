// The common case of both halves, in one step, as TCP's header prediction does it (RFC 1323, 4.2.1;
// Van Jacobson, 1990). A few tests show that nothing is out of the ordinary; then all state becomes
// what the general code would make it. The general code is the reference, and handles all other
// cases.
//   - send_at_once(): poll_packet(), for a SEND of one packet to a peer of this host.
//   - acknowledges_in_order(): on_acknowledge(), where SENDs and WRITEs are acknowledged as a
//   whole.
//   - expects_send(), take_send(): on_request(), for a SEND Only in order.
// RCResponder::take_train() is another such case.
#include <cstring>

#include "memory/touch.h"
#include "transport/rc/answer.h"
#include "transport/rc/requester.h"
#include "transport/rc/responder.h"

namespace verbena {
namespace {

constexpr Opcode kSendOnly{Service::kRC, Op::kSendOnly};
constexpr Opcode kSendOnlyWithImmediate{Service::kRC, Op::kSendOnlyWithImmediate};

bool is_plain_send(SendOp op) { return op == SendOp::kSend || op == SendOp::kSendWithImmediate; }

// Returns the payload if it is in one piece; nullptr if it is not, is refused, or is not in this
// process. A plain pointer, because an optional of more is returned through memory, which stalls.
const u8* payload_of(const SendWQE& wqe, const ProtectionTable& memory, PDId pd) {
  static constexpr u8 kNothing = 0;
  if (wqe.length_bytes == 0) return &kNothing;
  if (wqe.inline_bytes != nullptr) return wqe.inline_bytes;
  if (wqe.wr.sg_list.size() != 1) return nullptr;
  const SGE& sge = wqe.wr.sg_list.front();
  const Resolved from = memory.local(pd, sge.l_key, sge.address, sge.length, Access::kLocalRead);
  return from && is_here(from.data) ? from.data : nullptr;
}

}  // namespace

// --- requester

// Returns true if the WQE is the only one that has not started, and may start.
bool RCRequester::may_send_at_once(const SendWQE& wqe, Time now) {
  const bool is_quiet = qp_.state == QPState::kRTS && !completer_.has_failed() &&
                        !completer_.stopped_at() && !recovery_.is_paused() &&
                        !recovery_.is_probe_due() && local_.is_quiet(window_) &&
                        window_.scoreboard() == nullptr && !flight_.wants_acks();
  return is_quiet && is_plain_send(wqe.wr.op) && wqe.length_bytes <= mtu() &&
         (!wqe.wr.fence || !peer_.owes_answers()) &&
         window_.in_flight() < flight_.packets(mtu(), now) &&
         (peer_.has_credit(wqe.wr.op) || !window_.waits_for_response());
}

std::optional<u32> RCRequester::send_at_once(LocalPackets& way, Time now) {
  if (!window_.is_at_fresh() || window_.fresh() + 1 != window_.queue().end_index())
    return std::nullopt;
  const SendWQE& wqe = window_.current();
  if (!may_send_at_once(wqe, now)) return std::nullopt;
  const u8* const payload = payload_of(wqe, memory_, qp_.pd);
  if (payload == nullptr) return std::nullopt;
  const LocalSend send{.psn = window_.cursor(),
                       .payload = Bytes(payload, wqe.length_bytes),
                       .solicited = wqe.wr.solicited,
                       .with_immediate = wqe.wr.op == SendOp::kSendWithImmediate,
                       .immediate = wqe.wr.immediate};
  if (!way.send(qp_, send)) return std::nullopt;
  sent_at_once(wqe, now);
  return send.bytes();
}

// Nothing follows the SEND, so it has asked for its ACK.
void RCRequester::sent_at_once(const SendWQE& wqe, Time now) {
  peer_.on_message();
  unawaited_ = wqe.wr.signaled || qp_.signal_all ? 0 : unawaited_ + 1;
  ack_requests_.on_asked(now);
  if (!window_.waits_for_response()) recovery_.restart_timer(now);
  recovery_.on_sent(window_.cursor(), now);
  window_.send_single();
  note_waiting();
}

// Returns false if it did nothing.
bool RCRequester::acknowledges_in_order(const Acknowledgement& acknowledgement, Time now) {
  const auto& [psn, aeth] = acknowledgement;
  if (aeth.kind != AETHKind::kACK || window_.scoreboard() != nullptr || recovery_.is_probing() ||
      completer_.stopped_at() || window_.resends() || !flight_.is_open() ||
      !window_.is_expected(psn))
    return false;
  u64 index = window_.done();
  for (;;) {
    const SendWQE& wqe = window_.queue().at(index++);
    if (wqe.packets == 0 || expects_response(wqe.wr.op)) return false;
    if (wqe.last_psn == psn) break;
    if (psn.before(wqe.last_psn)) return false;  // not the whole WQE
  }
  note_news(now);
  window_.acknowledge_wqes(psn.next(), index);
  recovery_.on_acknowledged(window_.unacked(), now);
  if (window_.done() != window_.fresh()) complete_local();
  peer_.note_credits(aeth);
  return true;
}

// --- responder

std::optional<u8*> RCResponder::expects_send(const PacketView& packet) const {
  const BTH& bth = packet.headers.bth;
  if (bth.opcode != kSendOnly && bth.opcode != kSendOnlyWithImmediate) return std::nullopt;
  const bool is_quiet = bth.psn == expected_ && !failed_ && established_ &&
                        message_ == Message::kNone && !holds_receive_ && xrc_ == nullptr &&
                        reorder_buffer_ == nullptr && !may_raise() && !cqe_;
  const SGE* const sge = receive_queue_.front_sge();
  const std::size_t size = packet.payload.size();
  if (!is_quiet || sge == nullptr || size > sge->length || size > mtu()) return std::nullopt;
  if (size == 0) return nullptr;
  if (sge->address + (sge->length - 1) < sge->address) return std::nullopt;  // as in sg_walk.h
  const Resolved to =
      memory_.local(receive_pd(), sge->l_key, sge->address, size, Access::kLocalWrite);
  return to && is_here(to.data) ? std::optional(to.data) : std::nullopt;
}

bool RCResponder::take_send(const PacketView& packet, u8* to, CQE& out) {
  const u8* const from = packet.payload.data();
  const std::size_t size = packet.payload.size();
  if (size != 0 && !touch([=] { std::memmove(to, from, size); })) return false;
  describe_receive(CompletionOp::kReceive, receive_queue_.pop_wr_id(), static_cast<u32>(size),
                   packet, out);
  nak_sent_ = false;
  expect(expected_.next());
  msn_ = msn_.next();
  if (packet.headers.bth.ack_req) acknowledge();
  return true;
}

}  // namespace verbena
