// EngineRunner: drives the engines. Each call goes into one engine, and then everything that comes
// out is taken to its place: CQEs to the CQs, events to the application or into state changes, the
// next deadline to the timer queue, and the QP into the queue of those that may send.
// IBTA Vol 1, 10.3.1 (states a QP enters by itself), 10.10.2 and 11.6.3 (errors and events).
// Bounded: a QP enters Error once and a CQ overruns once, so following them up ends.
#pragma once

#include <algorithm>
#include <span>

#include "device/objects/notification_queue.h"
#include "device/objects/queue_entries.h"
#include "device/port/egress_scheduler.h"
#include "device/port/pacer.h"
#include "device/qp/timer_queue.h"

namespace verbena {

enum class MayContinue : u8 { kNo, kYes };

class EngineRunner {
 public:
  // `qps` is looked through when a CQ overruns. All of them outlive it.
  EngineRunner(const DeviceConfig& config, const QPTable& qps,
               const ObjectTable<SharedReceiveQueue>& srqs, AsyncEventQueue& events,
               const ProtectionTable& memory);

  // --- inputs
  [[nodiscard]] PostError post_send(QueuePair& qp, const SendWR& wr, Time now);
  // All of them, or none.
  [[nodiscard]] PostError post_sends(QueuePair& qp, std::span<const SendWR> wrs, Time now);
  [[nodiscard]] PostError post_receive(QueuePair& qp, const RecvWR& wr, Time now);
  void on_packet(QueuePair& qp, const PacketView& packet, const RxContext& context, Time now);
  // on_packet() or take_send() follows, of what it came with.
  void on_acknowledgement(QueuePair& qp, const Acknowledgement& acknowledgement, Time now) {
    qp.datagrams->on_acknowledgement(acknowledgement, now);
  }
  void on_cnp(QueuePair& qp, Time now) { pacer_.on_cnp(qp, now); }
  // The packet polled last, of a QP that is paced.
  void on_paced(QueuePair& qp, const Pacer::PacketSize& packet, Time now) {
    pacer_.on_sent(qp, packet, now);
  }
  // --- the common case of RC QPs (transport/rc/engine.h)
  // The same as on_packet(), for a SEND. Returns false if the caller must call on_packet().
  [[nodiscard]] bool take_send(QueuePair& qp, const PacketView& packet, Time now);
  // The same for a train of so many packets.
  [[nodiscard]] bool take_train(QueuePair& qp, const PacketView& packet, u32 packets, Time now);
  // Returns true if no other QP has its turn before this one, and no rate holds it.
  [[nodiscard]] bool is_free_to_send(const QueuePair& qp) const {
    return qp.attributes.state == QPState::kRTS && !may_send_ && !qp.paced && !qp.send_paused &&
           !egress_.holds(qp);
  }
  // Requests were posted to the QP. They wait for its turn, or were sent without one.
  void on_posted(QueuePair& qp, Time now);
  void on_sent_at_once(QueuePair& qp);

  // --- streams: after an input of the QP's engine
  void on_stream_input(QueuePair& qp, Time now) { settle(qp, now); }
  // After it was asked for bytes, or has sent some: whether it may have more.
  void on_stream_output(QueuePair& qp, MayContinue may_continue, Time now);

  // The program has polled these.
  void on_polled(std::span<const CQE> cqes) { entries_.free(cqes); }

  void on_timer(Time now);
  [[nodiscard]] bool run_deferred(Time now);
  [[nodiscard]] bool may_have_deferred() const { return may_have_deferred_; }
  // A change by the application, legal, with the attributes already in place; not to Reset.
  void enter(QueuePair& qp, QPState to, Time now);
  // Everything is forgotten, CQEs too. The attributes become `initial`.
  void reset(QueuePair& qp, const QPAttributes& initial, Time now);

  // --- injected faults
  void fail(QueuePair& qp, Time now);  // Error, and kQPFatal; an unused QP (Reset) stays
  void overrun(CompletionQueue& cq, Time now);

  // --- outputs
  // Returns the QP that `out` comes from, or nullptr if there is nothing to send now. The spans in
  // `out` are valid until the next input.
  [[nodiscard]] QueuePair* poll_packet(Time now, Trains trains, TxPacket& out);
  // Returns the QP whose stream sends next, or nullptr. The QP leaves the queue of those that may.
  [[nodiscard]] QueuePair* poll_stream(Time now);
  // The same for acknowledgements alone; none is found with AcknowledgementOrder::kInTurn.
  [[nodiscard]] QueuePair* poll_acknowledgement(Time now, TxPacket& out);
  [[nodiscard]] Time next_timer() const {
    return std::min(timers_.next(), notifications_.next_timer());
  }
  // Returns false if poll_packet() would return no packet until time passes.
  [[nodiscard]] bool may_send() const { return may_send_; }
  void request_notification(CompletionQueue& cq, NotifyOn on, Time now) {
    notifications_.on_request(cq);
    if (cq.request_notification(on, now)) notifications_.on_leftovers(cq);
  }
  [[nodiscard]] bool has_requested_notification() const { return notifications_.has_requests(); }
  void hurry_leftovers() { notifications_.hurry_leftovers(); }
  [[nodiscard]] bool has_notification() const { return notifications_.has_due(); }
  void pause(QueuePair& qp) { egress_.pause(qp); }
  void resume(QueuePair& qp) {
    egress_.resume(qp);
    may_send_ = true;
  }
  [[nodiscard]] Time next_send() const { return egress_.next_release(); }
  [[nodiscard]] CompletionQueue* poll_notification() { return notifications_.poll(); }

  // --- objects that come and go
  void begin_flow(QueuePair& qp);  // before it has an engine
  void on_created(u32 qp_count);
  // Before it is destroyed: nothing here refers to it any more.
  void forget(QueuePair& qp);
  void forget(CompletionQueue& cq) { notifications_.forget(cq); }

 private:
  [[nodiscard]] bool take(const EgressScheduler::Turn& turn, MaySend what, Time now, TxPacket& out);
  void activate(QueuePair& qp) {
    egress_.activate(qp);
    may_send_ = true;
  }
  void settle(QueuePair& qp, Time now);
  void collect(QueuePair& qp, Time now);
  void collect_after_packet(QueuePair& qp, Time now);
  EngineOutputs drain(QueuePair& qp, EngineOutputs out, Time now);
  bool drain_cqes(QueuePair& qp, EngineOutputs& out, Time now);
  void drain_receive_cqes(QueuePair& qp, EngineOutputs& out, bool& reported, Time now);
  bool poll_send_cqe(QueuePair& qp, Time now, bool& reported);
  bool poll_receive_cqe(QueuePair& qp, CQE& cqe, bool& reported);
  void take_receive_cqe(QueuePair& qp, CQE& cqe, Time now);
  void deliver_receive(QueuePair& qp, CQE& cqe, Time now);
  void deliver(CompletionQueue& cq, CQE& cqe);
  void lose(CompletionQueue& cq, const CQE& cqe);
  void deliver_sends(QueuePair& qp, Time now);
  void raise_srq_limit(const QueuePair& qp);
  // Copies to and from far memory that end late (device/qp/qp_copies.h).
  [[nodiscard]] bool waits(const CopyLane& lane, const HeldCQEs& held) const {
    return copies_.has_staging() && (!held.empty() || !lane.has_ended(lane.begun()));
  }
  void look_at_copies(QueuePair& qp, Time now);
  void follow_failed_copies(QueuePair& qp, Time now);
  void deliver_held(QueuePair& qp, Time now);
  static Time deadline_of(const QueuePair& qp) {
    return std::min(qp.engine->next_timer(), qp.copies.look_at);
  }

  void set_timer(QueuePair& qp, Time deadline) {
    qp.timer_armed = deadline != Time::never();
    timers_.update(qp, deadline);
  }
  void deliver_to_srq(QueuePair& qp, const CQE& cqe, Time now);
  void count_receive(const QueuePair& qp, const CQE& cqe) {
    qp.attributes.counters.on_completion(CountedOp::kReceive, cqe.status == WQEStatus::kSuccess,
                                         cqe.byte_length);
  }
  u32 drain_events(QueuePair& qp);
  void follow(QueuePair& qp, u32 event_bits, bool reported, Time now);
  void set_state(QueuePair& qp, QPState to, Time now);
  void publish(const QueuePair& qp);
  void on_overrun(CompletionQueue& cq);
  void fail_qps_of_overrun_cqs(Time now) {
    while (const CompletionQueue* const cq = overrun_.pop_front()) fail_qps_of(*cq, now);
  }
  void fail_qps_of(const CompletionQueue& cq, Time now);
  void raise(QueuePair& qp, AsyncEventType type) { events_.raise(qp.events, type); }

  const DeviceConfig& config_;
  const QPTable& qps_;
  QueueEntries entries_;
  AsyncEventQueue& events_;
  const FarRegions& far_;
  CopyQueue& copies_;
  EgressScheduler egress_;
  bool may_send_ = false;           // one of those that are active is not idle
  bool may_have_deferred_ = false;  // one had a timer that is soon, perhaps for that
  Pacer pacer_;
  TimerQueue timers_;
  NotificationQueue notifications_;
  IntrusiveList<CompletionQueue, &CompletionQueue::overrun_link> overrun_;
};

}  // namespace verbena
