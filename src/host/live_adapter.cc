#include "host/live_adapter.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "device/port/frame_check.h"
#include "host/os/clock.h"
#include "host/os/no_cancellation.h"

namespace verbena::host {
namespace {

constexpr Duration kExitPatience = ms(10);
constexpr Duration kTimerPatience = ms(4);  // while there is always something to receive
constexpr u32 kReceivedByCall = 4;          // batches, by one that does not poll
constexpr u32 kArrivedBatches = 64;         // of packets that wait before a QP changes state
constexpr u32 kHelperOffers = 16;           // of the core, to the program that has the lock

}  // namespace

Expected<std::shared_ptr<LiveAdapter>> LiveAdapter::start(const DeviceConfig& config,
                                                          std::unique_ptr<Link> link,
                                                          std::unique_ptr<LocalPath> local,
                                                          FabricLink* fabric) {
  std::shared_ptr<LiveAdapter> adapter(new LiveAdapter(config, std::move(link), std::move(local)));
  LiveAdapter* self = adapter.get();
  self->fabric_ = fabric;
  self->port_watch_.watch(fabric);
  self->mutex_.lock();  // the helper waits until alarm_ has it
  HelperThread::Work work{.serve = [self] { self->serve(); }};
  if (LocalPath* const path = self->local_.get()) {
    work.begin = [path] { path->hold_life(); };
    work.end = [path] { path->end_life(); };
  }
  Expected<std::unique_ptr<HelperThread>> helper =
      HelperThread::start(self->link_->descriptors(), std::move(work));
  if (helper) self->alarm_.start(std::move(*helper));
  self->mutex_.unlock();
  if (!helper) return tl::unexpected(helper.error());
  if (self->local_ != nullptr) self->local_->start();
  return adapter;
}

LiveAdapter::~LiveAdapter() {
  mutex_.lock();
  if (local_ != nullptr) local_->close();
  mutex_.unlock();
  if (HelperThread* const helper = alarm_.thread()) helper->stop();  // it uses everything else
  stream_side_.reset();
  stats_.reset();
  const std::lock_guard lock(mutex_);
  link_->flush();
  link_->leave();
}

Time LiveAdapter::lock(Adapter::Clock clock) {
  mutex_.lock();
  return clock == Clock::kNow ? clock_.now() : clock_.last();
}

void LiveAdapter::unlock(Time now) {
  holding_.on_call(now);
  mutex_.unlock();
}

void LiveAdapter::flush_and_unlock(Time now) {
  const std::lock_guard lock(mutex_, std::adopt_lock);
  holding_.on_call(now);
  note_requested();
  policy_.on_application_post(now);
  run_device_timers(now);
  const Appended appended = append_frames(now);
  if (appended.requests) {
    holding_.on_request(now);
    policy_.on_application_request();
  }
  if (appended.any) {
    if (holding_.may_hold(now) && link_->may_wait())
      holding_.on_held(now);
    else
      send_frames(now);
    note_return(now);
  }
  if (appended.local.requests) note_local_reply(now);
  if (policy_.waits_for_events()) run_deferred(now);  // no poll will
  take_outputs(now);
  tell_helper_after_call(now);
}

// As flush_and_unlock(), where there are records in rings and nothing else.
void LiveAdapter::publish_and_unlock(Time now) {
  if (local_ == nullptr || policy_.waits_for_events() || device_time(now) >= device_.next_timer())
    return flush_and_unlock(now);
  const std::lock_guard lock(mutex_, std::adopt_lock);
  holding_.on_call(now);
  local_->outgoing().flush();
  if (local_->outgoing().take_taken().requests) note_local_reply(now);
  tell_helper_of_device();
}

// Returns false if nothing was deferred. Flushes held packets first, because the copy is slow.
bool LiveAdapter::run_deferred(Time now) {
  if (holding_.deadline() != Time::never() && device_.may_have_deferred()) send_frames(now);
  if (!device_.run_deferred(device_time(now))) return false;
  send_frames(now);
  return true;
}

void LiveAdapter::run_deferred_in_poll() {
  const Time now = clock_.now();
  if (!run_deferred(now)) return;
  take_outputs(now);
  tell_helper();
}

// It has taken the acknowledgement along.
void LiveAdapter::note_local_reply(Time now) {
  holding_.on_request(now);
  if (std::exchange(holds_in_rings_, false)) holding_.on_sent();
}

// The clock is read only where the call may have taken long.
bool LiveAdapter::note_return(Time began) {
  const bool called = link_->take_called();
  holding_.on_return(called ? clock_.exactly_now() : began);
  return called;
}

// While others have the core, the helper may receive the end of the program's work and then a
// reason to give the QP up, such as a DREQ. So the thread polls again: a program that looks for
// both in turn finds the completion first.
u32 LiveAdapter::poll_cq(CompletionQueue* cq, std::span<CQE> out) {
  std::unique_lock lock(mutex_);
  u32 count = poll_with_lock(cq, out);
  if (policy_.should_offer_core()) {
    lock.unlock();
    ::sched_yield();
    lock.lock();
    count = poll_with_lock(cq, out);
    policy_.skip_offer();
  }
  lock.unlock();
  if (count != 0 && instruments_.explainer() != nullptr && Explainer::concerns(out.first(count)))
    explain(out.first(count));
  return count;
}

u32 LiveAdapter::poll_with_lock(CompletionQueue* cq, std::span<CQE> out) {
  holding_.on_poll();
  if (is_due(clock_.last() + kDeferral)) run_deferred_in_poll();
  u32 count = device_.poll_cq(cq, out);
  const Received received = policy_.should_receive_in_poll(count != 0)
                                ? receive_in_poll(Look::kLikely)
                                : Received::kNothing;
  const bool any = received != Received::kNothing;
  if (any && count == 0) count = device_.poll_cq(cq, out);
  if (any) policy_.on_receipt_in_poll(clock_.last());
  note_requested();
  policy_.on_application_poll(result_of_poll(count, any), clock_.last());
  const bool stays = policy_.should_stay();
  while (policy_.should_stay()) stay_once();
  if (received == Received::kThroughRings && !stays)
    tell_helper_of_device();
  else if (any || policy_.is_listened_to() || alarm_.is_check_near(clock_.last()))
    tell_helper_after_call(clock_.last());
  return count;
}

LiveAdapter::Received LiveAdapter::receive_in_poll(Look look) {
  const Time now = clock_.now();
  holding_.on_call(now);
  if (holding_.must_send_in_poll()) send_frames(now);
  const bool received = receive_batch(look, now);
  const bool timed = is_due(now) && run_due_timers(now);
  if (!received && !timed) {
    holding_.on_vain_poll(now);
    return Received::kNothing;
  }
  send_or_await_reply(now);
  due_ = std::min(due_, link_->next_timer());  // it may delay what was sent
  take_outputs(now);
  const bool called = note_return(now);
  return called || timed ? Received::kMore : Received::kThroughRings;
}

PollResult LiveAdapter::result_of_poll(u32 count, bool received) const {
  if (count == 0) return received ? PollResult::kReceived : PollResult::kEmpty;
  // A packet that comes through rings may have needed no acknowledgement, so it indicates nothing.
  return holding_.awaits_reply() && !awaited_in_rings_ ? PollResult::kFoundWithRequest
                                                       : PollResult::kFound;
}

void LiveAdapter::explain(std::span<const CQE> cqes) {
  std::unique_lock lock(mutex_);
  std::optional<explain::Facts> error = instruments_.explainer()->on_completions(device_, cqes);
  lock.unlock();
  if (error) Explainer::tell(std::move(*error));
}

void LiveAdapter::stay_once() {
  const bool offers = policy_.should_offer_core_in_stay(clock_.last());
  mutex_.unlock();  // others may have waited for it
  if (offers) ::sched_yield();
  mutex_.lock();
  const Time now = clock_.now();
  const u64 frames = frames_;
  const bool received = receive_batch(Look::kLikely, now);
  const bool timed = is_due(now) && run_due_timers(now);
  if (received || timed) {
    send_or_await_reply(now);
    take_outputs(now);
  }
  // A link that delays frames has received some, and none for the device.
  const bool any = frames_ != frames || (received && stream_side_ != nullptr);
  policy_.on_stay(any ? LookResult::kReceived : LookResult::kNothing, now);
}

void LiveAdapter::request_notification(CompletionQueue* cq, NotifyOn on) {
  const std::lock_guard lock(mutex_);
  const Time now = clock_.now();
  device_.request_notification(cq, on, device_time(now));
  policy_.on_notification_request();
  if (holding_.holds_requests()) send_frames(now);  // no poll will
  if (run_deferred(now)) take_outputs(now);
  tell_helper_after_call(now);
}

// --- threads that wait for events: those that programs cancel

Adapter::Wait LiveAdapter::begin_wait() {
  const NoCancellation guard;
  const std::lock_guard lock(mutex_);
  const Time now = clock_.now();
  if (holding_.holds_requests()) send_frames(now);  // no poll will
  device_.hurry_leftovers();
  take_outputs(now);
  return policy_.on_wait(now) ? Wait::kForLink : leave_to_others();
}

Adapter::Wait LiveAdapter::receive_in_wait(const std::function<bool()>& has_event) {
  const NoCancellation guard;
  const std::lock_guard lock(mutex_);
  if (policy_.is_listened_to()) {
    policy_.on_wake_in_wait(clock_.exactly_now());
    return look_and_sleep(has_event, Look::kEverywhere);
  }
  if (policy_.should_look_in_wait(clock_.last())) return look_and_sleep(has_event, Look::kLikely);
  return begin_sleep() ? Wait::kForLink : look_and_sleep(has_event, Look::kEverywhere);
}

void LiveAdapter::end_wait(Wait from) {
  const NoCancellation guard;
  if (from == Wait::kForEvent) {
    asleep_.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  const std::lock_guard lock(mutex_);
  leave_wait(clock_.exactly_now());
}

Adapter::Wait LiveAdapter::look_and_sleep(const std::function<bool()>& has_event, Look look) {
  for (;; look = Look::kEverywhere) {
    tell_helper();
    const Looked looked = look_until(has_event, look);
    if (looked == Looked::kEvent) {
      leave_wait(clock_.last());
      return Wait::kOver;
    }
    if (looked == Looked::kEventsOfOthers) {
      policy_.on_wait_over(Sleepers::kSome, clock_.last());
      return leave_to_others();
    }
    if (!policy_.should_sleep_on_link()) {
      policy_.on_vain_wakes(clock_.last());
      return leave_to_others();
    }
    if (begin_sleep()) return Wait::kForLink;
  }
}

// Returns false if something has come for which no descriptor would wake the waiter.
bool LiveAdapter::begin_sleep() {
  policy_.on_sleep_in_wait();
  if (!refresh_helper()) return true;
  policy_.on_wake_in_wait(clock_.last());
  return false;
}

LiveAdapter::Looked LiveAdapter::look_until(const std::function<bool()>& has_event, Look look) {
  for (;; look = Look::kLikely) {
    const u64 woken = events_.woken();
    const bool received = receive_in_poll(look) != Received::kNothing;
    const Time now = clock_.last();
    policy_.on_look_in_wait(received ? LookResult::kReceived : LookResult::kNothing, now);
    if (has_event()) return Looked::kEvent;
    if (events_.woken() != woken && policy_.should_leave_to_woken()) return Looked::kEventsOfOthers;
    if (!policy_.should_look_in_wait(now)) return Looked::kLong;
    const bool offers = policy_.should_offer_core();
    mutex_.unlock();  // others may have waited for it
    if (offers) ::sched_yield();
    mutex_.lock();
    if (offers) policy_.on_core_returned(now, clock_.now());
  }
}

Adapter::Wait LiveAdapter::leave_to_others() {
  asleep_.fetch_add(1, std::memory_order_relaxed);
  tell_helper();
  return Wait::kForEvent;
}

void LiveAdapter::leave_wait(Time now) {
  const bool others = asleep_.load(std::memory_order_relaxed) != 0;
  policy_.on_wait_over(others ? Sleepers::kSome : Sleepers::kNone, now);
  tell_helper();
}

void LiveAdapter::receive_arrived() {
  const std::lock_guard lock(mutex_);
  const Time now = clock_.now();
  u32 left = kArrivedBatches;
  while (left != 0 && receive_batch(Look::kEverywhere, now)) --left;
  const bool holds = holding_.deadline() != Time::never();  // perhaps a QP's last acknowledgement
  if (left == kArrivedBatches && !holds) return;
  send_frames(now);
  take_outputs(now);
  tell_helper();
}

void LiveAdapter::wait_for_wakes() {
  mutex_.lock_after_wakes();
  mutex_.unlock();
}

Status LiveAdapter::attach_multicast(QueuePair* qp, const GID& group) {
  const std::lock_guard lock(mutex_);
  const bool is_member = device_.receives_multicast(group);
  if (const Status status = device_.attach_multicast(qp, group); status != Status::kOk || is_member)
    return status;
  const Expected<void> joined = link_->join_multicast(group);
  if (joined) return Status::kOk;
  CHECK(device_.detach_multicast(qp, group) == Status::kOk);
  return joined.error().error == EOPNOTSUPP ? Status::kNotSupported : Status::kNoMemory;
}

Status LiveAdapter::detach_multicast(QueuePair* qp, const GID& group) {
  const std::lock_guard lock(mutex_);
  return detach_with_lock(qp, group);
}

Status LiveAdapter::detach_with_lock(QueuePair* qp, const GID& group) {
  const Status status = device_.detach_multicast(qp, group);
  if (status == Status::kOk && !device_.receives_multicast(group)) link_->leave_multicast(group);
  return status;
}

void LiveAdapter::detach_from_all(QueuePair* qp) {
  const std::lock_guard lock(mutex_);
  while (const std::optional<GID> group = device_.multicast_group_of(qp))
    CHECK(detach_with_lock(qp, *group) == Status::kOk);
}

void LiveAdapter::add_port_listener(EventTarget* listener) {
  const std::lock_guard lock(mutex_);
  events_.add_port_listener(listener);
}

void LiveAdapter::remove_port_listener(EventTarget* listener) {
  const std::lock_guard lock(mutex_);
  events_.remove_port_listener(listener);
}

bool LiveAdapter::receive_batch(Look look, Time now) {
  if (stream_side_ != nullptr) return stream_side_->receive(look, device_time(now));
  if (!link_->receive(look)) return false;
  take_frames(now);
  return true;
}

void LiveAdapter::take_frames(Time now) {
  IngressFrame frame;
  while (link_->poll_frame(frame, now)) {
    ahead_.fetch(device_, link_->upcoming(FetchAhead::kFrames));
    const Reception reception = take_frame(frame, now);
    instruments_.note_received(frame, reception, now);
    connections_.receive(now);
  }
}

Reception LiveAdapter::take_frame(const IngressFrame& frame, Time now) {
  ++frames_;
  if (const PacketView* const packet = link_->decoded())
    return device_.on_packet(*packet, frame, device_time(now));
  return device_.on_frame(frame, device_time(now));
}

// Looks up the next due time once after each change.
bool LiveAdapter::find_due(Time now) {
  if (fabric_ != nullptr) return true;  // its clock changes its pace
  due_ = std::min(device_due(), others_due());
  return now >= due_;
}

// Returns the earliest due time of all timers but the device's.
Time LiveAdapter::others_due() const {
  const Time due = std::min(connections_.next_timer(), link_->next_timer());
  return stream_side_ == nullptr ? due : std::min(due, stream_side_->next_timer());
}

bool LiveAdapter::run_due_timers(Time now) {
  if (stream_side_ != nullptr && stream_side_->run_due_timers(now)) return true;
  bool any = now >= link_->next_timer();
  if (any) take_frames(now);
  any = connections_.run_due_timers(now) || any;
  any = run_device_timers(now) || any;
  return any || device_time(now) >= next_send();
}

// The packet that a timer waits for may have arrived already and be in the socket. A needless
// retransmission makes the queues longer, until no answer comes in time.
bool LiveAdapter::run_device_timers(Time now) {
  const Time device_now = device_time(now), due = device_.next_timer();
  if (device_now < due) return false;
  if (device_now < due + kTimerPatience && receive_batch(Look::kLikely, now)) return true;
  device_.on_timer(device_now);
  if (stream_side_ != nullptr) stream_side_->after_device_timers(now);
  return true;
}

void LiveAdapter::open_stats(const LocalAddress& address) {
  const std::lock_guard lock(mutex_);
  stats_ = StatsPort::open(address, slot_of(device_.config().first_qpn.value));
  if (stats_) alarm_.thread()->watch(stats_->fd(), [this] { serve_stats(); });
}

void LiveAdapter::serve_stats() {
  const std::lock_guard lock(mutex_);
  if (stream_side_ != nullptr) stream_side_->publish_counters();
  if (stats_) stats_->serve(device_, link_->counters(), events_.port_listeners(), monotonic_now());
}

Expected<void> LiveAdapter::set_faults(std::vector<faults::Rule> rules, u64 seed) {
  const Session session = enter();
  return instruments_.set_faults(std::move(rules), seed, session.real_now());
}

std::optional<ExportPlace> LiveAdapter::export_place() {
  const Session session = enter();
  return local_ == nullptr ? std::nullopt : std::optional(local_->place());
}

Expected<std::shared_ptr<ProcessMemory>> LiveAdapter::exporter_at(const ExportPlace& place) {
  const Session session = enter();
  if (local_ == nullptr) return failure(EOPNOTSUPP, "no memory that processes share");
  return local_->exporter_at(place);
}

LiveAdapter::Appended LiveAdapter::append_frames(Time now) {
  Appended appended;
  if (stream_side_ != nullptr) {
    appended.any = appended.requests = stream_side_->send(now);
    return appended;
  }
  if (has_frames(now)) {
    for (; poll_frame(now); appended.any = true) {
      appended.requests |= frame_.urgency != Urgency::kWithReply;
      if (frame_.urgency == Urgency::kFirst)
        frame_.urgency = holding_.posts_on() ? Urgency::kWithMore : Urgency::kNow;
      instruments_.note_sent(frame_, now);
      link_->append(frame_);
    }
  } else if (local_ != nullptr) {
    local_->outgoing().flush();
  }
  if (local_ != nullptr) appended.local = local_->outgoing().take_taken();
  return appended;
}

bool LiveAdapter::has_frames(Time now) {
  return device_.has_frames() || device_time(now) >= next_send();
}

// If the simulated NIC of a fabric has no room for data, polls acknowledgements only.
bool LiveAdapter::poll_frame(Time now) {
  if (fabric_ == nullptr || fabric_->takes_data())
    return device_.poll_frame(device_time(now), frame_, link_->takes());
  return device_.poll_acknowledgement(device_time(now), frame_);
}

// Returns a time of the device's clock. Packets that wait for the simulated NIC have no time:
// never().
Time LiveAdapter::next_send() const {
  return fabric_ == nullptr || fabric_->takes_data() ? device_.next_send() : Time::never();
}

const FabricPortAttributes* LiveAdapter::subnet_port() {
  const bool is_on_subnet = fabric_ != nullptr && fabric_->settings().is_infiniband;
  return is_on_subnet ? &fabric_->settings().port : nullptr;
}

void LiveAdapter::send_frames(Time now) {
  append_frames(now);
  link_->flush();
  holding_.on_sent();
  holds_in_rings_ = false;
}

void LiveAdapter::drain(Time now) {
  send_frames(now);
  take_outputs(now);
}

// The program goes on, and may reply to what it has just received.
void LiveAdapter::send_or_await_reply(Time now) {
  if (awaits_reply_in_rings(now)) return;
  const bool may_hold = holding_.may_hold_acknowledgement();
  if (may_hold && local_ != nullptr) local_->outgoing().hold_acknowledgements();
  const Appended appended = append_frames(now);
  const bool acknowledges = (appended.any || appended.local.acknowledgements) && !appended.requests;
  awaited_in_rings_ = !appended.any;
  if (acknowledges) holding_.on_acknowledgement(now);
  if (acknowledges && may_hold && link_->may_wait()) {
    holding_.on_held_acknowledgement(now);
    holds_in_rings_ = !appended.any;
  } else {
    send_frames(now);
  }
}

// Returns true if the only output is an acknowledgement in a ring, which waits for the reply, as
// always in a conversation between processes of one host. If it returns false, it did nothing.
bool LiveAdapter::awaits_reply_in_rings(Time now) {
  if (local_ == nullptr || !holding_.may_hold_acknowledgement() || has_frames(now) ||
      !local_->outgoing().hold_acknowledgements_alone())
    return false;
  holding_.on_acknowledgement(now);
  holding_.on_held_acknowledgement(now);
  return awaited_in_rings_ = holds_in_rings_ = true;
}

bool LiveAdapter::take_outputs(Time now) {
  if (stream_side_ != nullptr && stream_side_->drain()) send_frames(now);
  if (connections_.drain(now)) {
    policy_.on_application_sleep();  // the peer will answer
    send_frames(now);
  }
  if (instruments_.fail_objects(device_time(now))) send_frames(now);
  port_watch_.look(device_time(now));
  if (local_ != nullptr) local_->wait_for_peers();
  return device_.has_events() && events_.deliver_all(device_, instruments_.explainer(), now);
}

bool LiveAdapter::refresh_helper() {
  due_ = Time();
  const Time now = clock_.last();
  if (alarm_.note_check(now)) return false;
  return alarm_.tell(*link_, device_due(), others_due(), now);
}

// To wake the helper for received frames would take longer than to receive them here.
void LiveAdapter::tell_helper_after_call(Time now) {
  for (u32 i = 0; refresh_helper(); ++i) {
    if (i == kReceivedByCall) return alarm_.wake(clock_.last());
    receive_batch(Look::kLikely, now);
    send_or_await_reply(now);
    take_outputs(now);
    note_requested();
  }
}

void LiveAdapter::tell_helper() {
  if (refresh_helper()) alarm_.wake(clock_.last());
}

void LiveAdapter::note_requested() {
  policy_.on_requested(device_.has_requested_notification() ? Requested::kSome : Requested::kNone);
}

void LiveAdapter::tell_helper_of_device() {
  due_ = std::min(due_, device_due());
  if (!alarm_.is_up_to_date(clock_.last())) tell_helper();
}

Time LiveAdapter::device_due() const {
  return real_time(std::min(device_.next_timer(), next_send()));
}

// The program may be in a call, on this very core. A thread that waits for the lock would get it
// between that call and the next one, at the cost of two core switches for each call. Threads that
// sleep wait for the helper, so it offers nothing then.
void LiveAdapter::lock_as_helper() {
  for (u32 i = 0; i < kHelperOffers && asleep_.load(std::memory_order_relaxed) == 0; ++i) {
    if (mutex_.try_lock()) return;
    ::sched_yield();
  }
  mutex_.lock();
}

// It tells the peers that it sleeps, and sets its alarm, only when it has nothing more to do.
void LiveAdapter::serve() {
  Time offered = Time::never();  // the core, to others
  Look look = Look::kEverywhere;
  for (bool again = true; again;) {
    lock_as_helper();
    std::unique_lock lock(mutex_, std::adopt_lock);
    const Time now = clock_.exactly_now();
    alarm_.on_wakeup();
    if (offered != Time::never()) policy_.on_core_returned_to_helper(offered, now);
    offered = Time::never();
    const Served served = try_to_serve(look, now);
    bool has_more = served.received && !served.woke;
    again = has_more || policy_.should_look_again(now);
    if (!again) again = has_more = refresh_helper();
    again = again && !alarm_.thread()->is_stopping();
    look = Look::kLikely;
    lock.unlock();
    if (!again || has_more) continue;
    offered = now;
    ::sched_yield();
  }
}

// If memory is missing, the remaining work waits for the next time.
LiveAdapter::Served LiveAdapter::try_to_serve(Look look, Time now) {
  try {
    return serve_once(look, now);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

LiveAdapter::Served LiveAdapter::serve_once(Look look, Time now) {
  if (now >= holding_.deadline()) holding_.on_overdue(now);
  Served served;
  served.received = policy_.on_helper_wake(now) && receive_batch(look, now);
  note_requested();
  if (served.received)
    policy_.on_helper_received(holding_.is_called_often(now) ? Calls::kOften : Calls::kSeldom, now);
  // The packet that a timer waits for may have arrived already.
  if (!served.received && device_time(now) >= device_.next_timer())
    (void)receive_batch(Look::kEverywhere, now);
  const bool timed = is_due(now) && run_due_timers(now);
  served.woke = take_outputs(now);
  if (timed || now >= holding_.deadline())
    send_frames(now);
  else if (served.received)
    send_or_await_reply(now);
  due_ = Time();
  return served;
}

void LiveAdapter::leave_at_exit() {
  const Time deadline = monotonic_now() + kExitPatience;
  while (!mutex_.try_lock()) {  // a thread may have ended with it
    if (monotonic_now() >= deadline) return;
    ::sched_yield();
  }
  const Time now = clock_.exactly_now();
  connections_.abandon_all(now);
  drain(now);
  stats_.reset();
  if (local_ != nullptr) local_->close();
  link_->leave();
  mutex_.unlock();
}

void LiveAdapter::abandon_in_child() {
  if (local_ != nullptr) local_->abandon();
  if (stream_side_ != nullptr) stream_side_->abandon();
  link_->abandon();
  stats_.reset();
  alarm_.thread()->abandon();
}

}  // namespace verbena::host
