#include "host/links/faulty_link.h"

#include <algorithm>

#include "host/os/clock.h"

namespace verbena::host {

using faults::Direction;
using faults::HeldFrame;
using faults::PacketInfo;
using faults::Verdict;

std::optional<ObjectFault> FaultyLink::poll_object_fault() {
  if (object_faults_.empty()) return std::nullopt;
  const ObjectFault fault = object_faults_.back();
  object_faults_.pop_back();
  return fault;
}

void FaultyLink::note_objects(const Verdict& verdict, QPN qp) {
  if (verdict.breaks_qp) object_faults_.push_back({ObjectFault::Kind::kBreakQP, qp});
  if (verdict.overruns_cq) object_faults_.push_back({ObjectFault::Kind::kOverrunCQ, qp});
}

// --- out

void FaultyLink::append(const EgressFrame& frame) {
  const Time now = monotonic_now();
  const Verdict verdict = filter_.judge(PacketInfo::of(frame), now);
  if (verdict.is_untouched()) return below_->append(frame);
  note_objects(verdict, frame.source_qp);
  if (verdict.dropped) return drop(verdict, frame, now);
  change(verdict, HeldFrame::of(frame), sending_, now);
}

void FaultyLink::drop(const Verdict& verdict, const EgressFrame& frame, Time now) {
  if (on_drop_) on_drop_(Direction::kTransmit, HeldFrame::of(frame), verdict.cause->text);
  if (verdict.answer) arriving_.push(now, HeldFrame::answer_to(frame, *verdict.answer));
}

void FaultyLink::flush() { send_until(monotonic_now()); }

void FaultyLink::send_until(Time due) {
  while (std::optional<HeldFrame> frame = sending_.pop(due)) {
    sent_.push_back(std::move(*frame));
    below_->append(sent_.back().egress());
  }
  below_->flush();
  sent_.clear();
}

void FaultyLink::leave() {
  send_until(Time::never());
  below_->leave();
}

// --- in

bool FaultyLink::receive(Look look) {
  return below_->receive(look) || arriving_.next_due() <= monotonic_now();
}

bool FaultyLink::poll_frame(IngressFrame& out, Time now) {
  while (below_->poll_frame(out, now))
    if (admit(out, now)) return true;
  arrived_ = arriving_.pop(monotonic_now());
  if (!arrived_) return false;
  out = arrived_->ingress();
  return true;
}

bool FaultyLink::admit(const IngressFrame& frame, Time now) {
  const std::optional<PacketInfo> packet = PacketInfo::of(frame);
  if (!packet) return true;
  const Verdict verdict = filter_.judge(*packet, now);
  if (verdict.is_untouched()) return true;
  note_objects(verdict, packet->local_qp);
  if (verdict.dropped)
    drop(verdict, frame, now);
  else
    change(verdict, HeldFrame::of(frame), arriving_, now);
  return false;
}

void FaultyLink::drop(const Verdict& verdict, const IngressFrame& frame, Time now) {
  if (on_drop_) on_drop_(Direction::kReceive, HeldFrame::of(frame), verdict.cause->text);
  if (!verdict.answer || !peer_of_) return;
  const std::optional<QPN> requester = peer_of_(PacketInfo::of(frame)->local_qp);
  if (!requester) return;
  if (auto answer = HeldFrame::answer_to(frame, *verdict.answer, *requester))
    sending_.push(now, std::move(*answer));
}

void FaultyLink::change(const Verdict& verdict, HeldFrame frame, faults::FrameQueue& queue,
                        Time now) {
  if (queue.size() + 2 > kMaxHeld) return;
  if (verdict.marked) frame.mark();
  if (verdict.copy_delay) queue.push(now + *verdict.copy_delay, frame);
  if (verdict.corruption) frame.corrupt(*verdict.corruption);
  queue.push(now + verdict.delay, std::move(frame));
}

Time FaultyLink::next_timer() const {
  return std::min({below_->next_timer(), sending_.next_due(), arriving_.next_due()});
}

}  // namespace verbena::host
