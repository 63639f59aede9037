#include "host/live_adapter.h"

#include <sched.h>

#include <algorithm>
#include <mutex>

#include "device/port/frame_check.h"
#include "host/links/captured_link.h"
#include "host/os/clock.h"
#include "host/os/no_cancellation.h"

namespace verbena::host {
namespace {

constexpr Duration kExitPatience = ms(10);
constexpr Duration kTimersRunByCalls = us(500);  // how late they are if no call follows, at most
constexpr Duration kLookWhileCalled = ms(2);     // how late what is held is then, at most
constexpr Duration kTimerPatience = ms(4);       // while there is always something to receive
constexpr u32 kReceivedByCall = 4;               // batches, by one that does not poll
constexpr u32 kArrivedBatches = 64;              // of packets that wait before a QP changes state
constexpr u32 kHelperOffers = 16;                // of the core, to the program that has the lock

}  // namespace

Expected<std::shared_ptr<LiveAdapter>> LiveAdapter::start(const DeviceConfig& config,
                                                          std::unique_ptr<Link> link,
                                                          std::unique_ptr<LocalPath> local,
                                                          FabricLink* fabric) {
  std::shared_ptr<LiveAdapter> adapter(new LiveAdapter(config, std::move(link), std::move(local)));
  LiveAdapter* self = adapter.get();
  self->fabric_ = fabric;
  self->mutex_.lock();  // the helper waits until helper_ is set
  HelperThread::Work work{.serve = [self] { self->serve(); }};
  if (LocalPath* const path = self->local_.get()) {
    work.begin = [path] { path->hold_life(); };
    work.end = [path] { path->end_life(); };
  }
  Expected<std::unique_ptr<HelperThread>> helper =
      HelperThread::start(self->link_->descriptors(), std::move(work));
  if (helper) self->helper_ = std::move(*helper);
  self->mutex_.unlock();
  if (!helper) return tl::unexpected(helper.error());
  if (self->local_ != nullptr) self->local_->start();
  return adapter;
}

LiveAdapter::~LiveAdapter() {
  if (local_ != nullptr) local_->close();
  if (helper_ != nullptr) helper_->stop();  // it uses everything else
  stream_side_.reset();
  stats_.reset();
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
  if (policy_.waits_for_events()) do_put_off(now);  // no poll will
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

// False: there was nothing of that kind. It takes long: what is held goes first.
bool LiveAdapter::do_put_off(Time now) {
  if (holding_.deadline() != Time::never() && device_.may_await()) send_frames(now);
  if (!device_.on_awaited(device_time(now))) return false;
  send_frames(now);
  return true;
}

void LiveAdapter::do_put_off_in_poll() {
  const Time now = clock_.now();
  if (!do_put_off(now)) return;
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

u32 LiveAdapter::poll_cq(CompletionQueue* cq, std::span<CQE> out) {
  std::unique_lock lock(mutex_);
  holding_.on_poll();
  if (is_due(clock_.last() + kPutOff)) do_put_off_in_poll();
  u32 count = device_.poll_cq(cq, out);
  const Received received =
      policy_.should_receive_in_poll(count != 0) ? receive_in_poll() : Received::kNothing;
  const bool any = received != Received::kNothing;
  if (any && count == 0) count = device_.poll_cq(cq, out);
  if (any) policy_.on_receipt_in_poll(clock_.last());
  note_requested();
  policy_.on_application_poll(result_of_poll(count, any), clock_.last());
  const bool stays = policy_.should_stay();
  while (policy_.should_stay()) stay_once();
  if (received == Received::kThroughRings && !stays)
    tell_helper_of_device();
  else if (any || policy_.listens() || is_check_near())
    tell_helper_after_call(clock_.last());
  const bool offers_core = policy_.should_offer_core();
  lock.unlock();
  if (count != 0 && explainer_ != nullptr && Explainer::concerns(out.first(count)))
    explain(out.first(count));
  if (offers_core) ::sched_yield();
  return count;
}

LiveAdapter::Received LiveAdapter::receive_in_poll() {
  const Time now = clock_.now();
  holding_.on_call(now);
  if (holding_.must_send_in_poll()) send_frames(now);
  const bool received = receive_batch(Look::kLikely, now);
  const bool timed = is_due(now) && run_due_timers(now);
  if (!received && !timed) {
    holding_.on_vain_poll(now);
    return Received::kNothing;
  }
  send_or_await_reply(now);
  take_outputs(now);
  const bool called = note_return(now);
  return called || timed ? Received::kMore : Received::kThroughRings;
}

PollResult LiveAdapter::result_of_poll(u32 count, bool received) const {
  if (count == 0) return received ? PollResult::kReceived : PollResult::kEmpty;
  // What comes through rings may have needed no acknowledgement: that is no sign of anything.
  return holding_.awaits_reply() && !awaited_in_rings_ ? PollResult::kFoundWithRequest
                                                       : PollResult::kFound;
}

void LiveAdapter::explain(std::span<const CQE> cqes) {
  std::unique_lock lock(mutex_);
  std::optional<explain::Facts> error = explainer_->on_completions(device_, cqes);
  lock.unlock();
  if (error) Explainer::tell(std::move(*error));
}

void LiveAdapter::stay_once() {
  mutex_.unlock();  // others may have waited for it
  if (policy_.should_offer_core_in_stay(clock_.last())) ::sched_yield();
  mutex_.lock();
  const Time now = clock_.now();
  const bool received = receive_batch(Look::kLikely, now);
  if (received) {
    send_or_await_reply(now);
    take_outputs(now);
  }
  policy_.on_stay(received ? LookResult::kReceived : LookResult::kNothing, now);
}

void LiveAdapter::request_notification(CompletionQueue* cq, NotifyOn on) {
  const std::lock_guard lock(mutex_);
  const Time now = clock_.now();
  device_.request_notification(cq, on, device_time(now));
  policy_.on_notification_request();
  if (holding_.holds_requests()) send_frames(now);  // no poll will
  if (do_put_off(now)) take_outputs(now);
  tell_helper_after_call(now);
}

// Threads that wait for events are those that programs cancel.
void LiveAdapter::look_before_sleep(const std::function<bool()>& has_event) {
  const NoCancellation guard;
  const std::lock_guard lock(mutex_);
  const Time now = clock_.now();
  const bool looks = policy_.on_wait(now);
  if (holding_.holds_requests()) send_frames(now);  // no poll will
  device_.hurry_leftovers();
  take_outputs(now);
  tell_helper();
  if (looks) {
    policy_.on_wait_over(look_until(has_event) ? WaitResult::kEvent : WaitResult::kSleep);
    tell_helper();
  }
}

// False: it is time to sleep.
bool LiveAdapter::look_until(const std::function<bool()>& has_event) {
  for (;;) {
    const bool received = receive_in_poll() != Received::kNothing;
    const Time now = clock_.last();
    policy_.on_look_in_wait(received ? LookResult::kReceived : LookResult::kNothing, now);
    if (has_event()) return true;
    if (!policy_.should_look_in_wait(now)) return false;
    const bool offers = policy_.should_offer_core();
    mutex_.unlock();  // others may have waited for it
    if (offers) ::sched_yield();
    mutex_.lock();
    if (offers) policy_.on_core_returned(now, clock_.now());
  }
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

Status LiveAdapter::attach_multicast(QueuePair* qp, const GID& group) {
  const std::lock_guard lock(mutex_);
  const bool is_member = device_.receives_multicast(group);
  if (const Status status = device_.attach_multicast(qp, group); status != Status::kOk || is_member)
    return status;
  if (link_->join_multicast(group)) return Status::kOk;
  CHECK(device_.detach_multicast(qp, group) == Status::kOk);
  return Status::kNoMemory;
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
  port_listeners_.push_back(listener);
}

void LiveAdapter::remove_port_listener(EventTarget* listener) {
  const std::lock_guard lock(mutex_);
  std::erase(port_listeners_, listener);
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
    if (explainer_ != nullptr) note_received(frame, reception, now);
    connections_.receive(now);
  }
}

void LiveAdapter::note_received(const IngressFrame& frame, Reception reception, Time now) {
  explain::PacketHistory& history = explainer_->history();
  if (const PacketView* const packet = link_->decoded()) {
    if (frame.acknowledgement != nullptr)
      history.on_received(*frame.acknowledgement, packet->headers.bth.dest_qp, now);
    history.on_received(*packet, frame.transport.size() - kICRCSize, reception, now);
  } else {
    history.on_received(frame, reception, now);
  }
}

Reception LiveAdapter::take_frame(const IngressFrame& frame, Time now) {
  if (const PacketView* const packet = link_->decoded())
    return device_.on_packet(*packet, frame, device_time(now));
  return device_.on_frame(frame, device_time(now));
}

// What is due when is looked up once after each change.
bool LiveAdapter::find_due(Time now) {
  if (fabric_ != nullptr) return true;  // its clock changes its pace
  due_ = std::min(device_due(), others_due());
  return now >= due_;
}

// All but the device's.
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

// What a timer waits for may have come already, and be in the socket: what is asked for again
// without need makes the queues longer, until nothing is answered in time.
bool LiveAdapter::run_device_timers(Time now) {
  const Time device_now = device_time(now), due = device_.next_timer();
  if (device_now < due) return false;
  if (device_now < due + kTimerPatience && receive_batch(Look::kLikely, now)) return true;
  device_.on_timer(device_now);
  if (stream_side_ != nullptr) stream_side_->after_device_timers(now);
  return true;
}

void LiveAdapter::capture_to(CaptureFile& file, const std::string& interface) {
  const Session session = enter();
  capture_ = &file;
  capture_interface_ = file.add_interface(interface);
  if (stream_side_ != nullptr) {
    stream_side_->capture_to(file, capture_interface_);
    return choose_path();
  }
  link_ = std::make_unique<CapturedLink>(std::move(link_), file, capture_interface_);
  choose_path();
}

// Faults and captures are of packets.
void LiveAdapter::choose_path() {
  if (local_ == nullptr) return;
  if (faulty_ == nullptr && !stream_faults_ && capture_ == nullptr)
    local_->turn_on();
  else
    local_->turn_off();
}

void LiveAdapter::open_stats(const LocalAddress& address) {
  const std::lock_guard lock(mutex_);
  stats_ = StatsPort::open(address, slot_of(device_.config().first_qpn.value));
  if (stats_) helper_->watch(stats_->fd(), [this] { serve_stats(); });
}

void LiveAdapter::serve_stats() {
  const std::lock_guard lock(mutex_);
  if (stream_side_ != nullptr) stream_side_->publish_counters();
  if (stats_)
    stats_->serve(device_, link_->counters(), static_cast<u32>(port_listeners_.size()),
                  monotonic_now());
}

Expected<void> LiveAdapter::set_faults(std::vector<faults::Rule> rules, u64 seed) {
  const Session session = enter();
  if (stream_side_ != nullptr) {
    stream_faults_ = !rules.empty();
    choose_path();
    return stream_side_->faults().set_rules(std::move(rules), seed, session.real_now());
  }
  if (faulty_ != nullptr) link_ = faulty_->release();
  faulty_ = nullptr;
  choose_path();
  if (rules.empty()) return {};
  auto faulty = std::make_unique<FaultyLink>(
      std::move(link_), faults::FaultFilter(std::move(rules), seed, session.real_now()));
  faulty->set_peer_lookup([this](QPN qpn) -> std::optional<QPN> {
    const QueuePair* const qp = device_.find_qp(qpn);
    if (qp == nullptr) return std::nullopt;
    const QPAttributes& attributes = device_.attributes_of(qp);
    return attributes.type == QPType::kUD ? std::nullopt : std::optional(attributes.dest_qp);
  });
  if (capture_ != nullptr || explainer_ != nullptr) faulty->set_drop_listener(drop_listener());
  faulty_ = faulty.get();
  link_ = std::move(faulty);
  choose_path();
  return {};
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

void LiveAdapter::explain_with(std::unique_ptr<Explainer> explainer) {
  const Session session = enter();
  explainer_ = std::move(explainer);
  if (local_ != nullptr)
    local_->outgoing().note_in(explainer_ != nullptr ? &explainer_->history() : nullptr, clock_);
}

DropListener LiveAdapter::drop_listener() {
  return
      [this](faults::Direction direction, const faults::HeldFrame& frame, std::string_view cause) {
        if (capture_ != nullptr) drop_to_capture(direction, frame, cause);
        if (explainer_ != nullptr) drop_to_history(direction, frame, cause);
      };
}

void LiveAdapter::drop_to_capture(faults::Direction direction, const faults::HeldFrame& frame,
                                  std::string_view cause) {
  capture_->add(capture_interface_, frame.ingress(),
                direction == faults::Direction::kTransmit ? pcapng::PacketDirection::kOutbound
                                                          : pcapng::PacketDirection::kInbound,
                monotonic_now(), "dropped by the fault: " + std::string(cause));
}

void LiveAdapter::drop_to_history(faults::Direction direction, const faults::HeldFrame& frame,
                                  std::string_view cause) {
  explain::PacketHistory& history = explainer_->history();
  if (direction == faults::Direction::kTransmit)
    history.on_lost_by_fault(frame.egress(), cause);
  else
    history.on_lost_by_fault(frame.ingress(), cause, clock_.last());
}

faults::FaultFilter* LiveAdapter::faults() {
  if (stream_side_ != nullptr) return stream_side_->faults().filter();
  return faulty_ != nullptr ? &faulty_->filter() : nullptr;
}

void LiveAdapter::note_object_fault(const ObjectFault& fault, const QueuePair* qp) {
  switch (fault.kind) {
    case ObjectFault::Kind::kBreakQP: return explainer_->on_qp_broken_by_rule(fault.qp);
    case ObjectFault::Kind::kOverrunCQ:
      return explainer_->on_cq_overrun_by_rule(device_.init_of(qp).send_cq);
  }
}

std::optional<ObjectFault> LiveAdapter::poll_object_fault() {
  if (stream_side_ != nullptr) return stream_side_->faults().poll_object_fault();
  return faulty_ != nullptr ? faulty_->poll_object_fault() : std::nullopt;
}

// False: nothing has changed.
bool LiveAdapter::fail_objects(Time now) {
  bool any = false;
  while (const std::optional<ObjectFault> fault = poll_object_fault()) {
    QueuePair* const qp = device_.find_qp(fault->qp);
    if (qp == nullptr) continue;
    any = true;
    if (explainer_ != nullptr) note_object_fault(*fault, qp);
    switch (fault->kind) {
      case ObjectFault::Kind::kBreakQP: device_.fail_qp(qp, device_time(now)); break;
      case ObjectFault::Kind::kOverrunCQ:
        device_.overrun_cq(device_.init_of(qp).send_cq, device_time(now));
        break;
    }
  }
  return any;
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
      if (explainer_ != nullptr) explainer_->history().on_sent(frame_, now);
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

// Of a fabric whose simulated NIC has no room for data, acknowledgements alone.
bool LiveAdapter::poll_frame(Time now) {
  if (fabric_ == nullptr || fabric_->takes_data())
    return device_.poll_frame(device_time(now), frame_, link_->takes());
  return device_.poll_acknowledgement(device_time(now), frame_);
}

// By the device's clock. What waits for the simulated NIC waits for no time.
Time LiveAdapter::next_send() const {
  return fabric_ == nullptr || fabric_->takes_data() ? device_.next_send() : Time::never();
}

// The fabric is gone, as a NIC would be.
void LiveAdapter::fail_all_qps(Time now) {
  for (const QueuePair* qp = device_.find_qp_from(QPN{}); qp != nullptr;) {
    const QPN number = device_.attributes_of(qp).qpn;
    device_.fail_qp(device_.find_qp(number), device_time(now));
    qp = device_.find_qp_from(QPN{number.value + 1});
  }
  deliver({.type = AsyncEventType::kPortError});
}

// Connections do not outlive the NIC process, which had their packets; the port does.
void LiveAdapter::tell_of_nic(Time now) {
  if (nic_->take_death()) fail_all_qps(now);
  if (nic_->take_return()) deliver({.type = AsyncEventType::kPortActive});
}

// What a subnet manager has done to the port. IBTA 11.6.3.3
void LiveAdapter::tell_port_changes() {
  const std::optional<FabricLink::PortChange> change = fabric_->take_port_change();
  if (!change) return;
  constexpr u8 kActive = 4;  // PortInfo.PortState
  const FabricPortAttributes &before = change->before, &now = change->now;
  const auto tell = [this](bool is_so, AsyncEventType type) {
    if (is_so) deliver({.type = type});
  };
  tell(before.lid != now.lid || before.lmc != now.lmc, AsyncEventType::kLIDChange);
  tell(before.sm_lid != now.sm_lid || before.sm_sl != now.sm_sl, AsyncEventType::kSMChange);
  tell(before.p_keys != now.p_keys, AsyncEventType::kPKeyChange);
  tell(before.gid_prefix != now.gid_prefix, AsyncEventType::kGIDChange);
  tell(now.client_reregister, AsyncEventType::kClientReregister);
  tell(before.state == kActive && now.state != kActive, AsyncEventType::kPortError);
  tell(before.state != kActive && now.state == kActive, AsyncEventType::kPortActive);
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

// All that is to go is an acknowledgement in a ring, which waits for the reply: as each time in a
// conversation between processes of one host. False: it is not so, and nothing was done.
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
  if (fail_objects(now)) send_frames(now);
  if (fabric_ != nullptr && fabric_->has_died()) fail_all_qps(now);
  if (nic_ != nullptr) tell_of_nic(now);
  if (fabric_ != nullptr) tell_port_changes();
  if (local_ != nullptr) local_->wait_for_peers();
  return device_.has_events() && take_events(now);
}

bool LiveAdapter::take_events(Time now) {
  bool woke = false;
  while (const std::optional<void*> user = device_.poll_completion_event()) {
    if (*user == nullptr) continue;
    static_cast<EventTarget*>(*user)->on_completion_event();
    woke = true;
  }
  while (const std::optional<AsyncEvent> event = device_.poll_async_event()) {
    if (explainer_ != nullptr) explainer_->on_event(device_, *event, now);
    deliver(*event);
  }
  return woke;
}

void LiveAdapter::deliver(const AsyncEvent& event) {
  if (event.qp == nullptr && event.cq == nullptr && event.srq == nullptr) {
    for (EventTarget* listener : port_listeners_) listener->on_async_event(event);
    return;
  }
  void* user = event.qp != nullptr   ? Device::user_of(event.qp)
               : event.cq != nullptr ? Device::user_of(event.cq)
                                     : Device::user_of(event.srq);
  if (user != nullptr) static_cast<EventTarget*>(user)->on_async_event(event);
}

bool LiveAdapter::refresh_helper() {
  due_ = Time();
  told_check_ = policy_.next_check();
  if (knows_already()) return false;
  const Time device = device_due(), others = others_due();
  policy_.listens() ? helper_->listen() : helper_->ignore();
  const Listening listening = policy_.listens() ? Listening::kYes : Listening::kNo;
  const bool has_come = link_->on_listening(listening);
  told_listening_ = listening;
  told_alarm_ = helper_->wake_at(helper_deadline(device, others), clock_.last());
  return has_come;
}

// To wake the helper for what has come would take longer than to receive it.
void LiveAdapter::tell_helper_after_call(Time now) {
  for (u32 i = 0; refresh_helper(); ++i) {
    if (i == kReceivedByCall) return wake_helper();
    receive_batch(Look::kLikely, now);
    send_or_await_reply(now);
    take_outputs(now);
    note_requested();
  }
}

void LiveAdapter::tell_helper() {
  if (refresh_helper()) wake_helper();
}

void LiveAdapter::wake_helper() { told_alarm_ = helper_->wake_at(clock_.last(), clock_.last()); }

void LiveAdapter::note_requested() {
  policy_.on_requested(device_.has_requested_notification() ? Requested::kSome : Requested::kNone);
}

void LiveAdapter::tell_helper_of_device() {
  due_ = std::min(due_, device_due());
  if (policy_.next_check() != told_check_ || !knows_already()) tell_helper();
}

// Then it is put off, if the polls have put off the check.
bool LiveAdapter::is_check_near() const {
  return policy_.next_check() != told_check_ || told_alarm_ - clock_.last() < HelperThread::kNear;
}

// While calls come, all that the helper waits for is a check, which it is told of again once it has
// come.
bool LiveAdapter::knows_already() const {
  return !policy_.listens() && told_listening_ == Listening::kNo &&
         HelperThread::will_do(told_alarm_, next_look(clock_.last()), clock_.last());
}

// When the helper is to look after the program and what is held. Calls send that themselves, again
// and again, and to set the alarm anew takes 15 us on a virtual machine: so it is late for what is
// held, and calls put it off once in kLookWhileCalled.
Time LiveAdapter::next_look(Time now) const {
  const Time check = policy_.next_check();
  return holding_.held_lately(now) ? std::min(check, now + kLookWhileCalled) : check;
}

Time LiveAdapter::device_due() const {
  return real_time(std::min(device_.next_timer(), next_send()));
}

// Calls run the device's timers too: while they come, the helper only looks whether they still do.
// To set its alarm anew takes as long as ten calls.
Time LiveAdapter::helper_deadline(Time device, Time others) const {
  const Time now = clock_.last(), check = next_look(now), by_calls = now + kTimersRunByCalls;
  if (!policy_.listens()) return check;
  return std::min(
      {check, others, holding_.is_called_often(now) ? std::max(device, by_calls) : device});
}

// The program may be in a call, on this very core: who waited for the lock would get it between
// that call and the next one, at the price of two switches of the core for each call.
void LiveAdapter::lock_as_helper() {
  for (u32 i = 0; i < kHelperOffers; ++i) {
    if (mutex_.try_lock()) return;
    ::sched_yield();
  }
  mutex_.lock();
}

void LiveAdapter::serve() {
  std::optional<Time> offered;  // the core, to others
  Look look = Look::kEverywhere;
  for (bool again = true; again;) {
    lock_as_helper();
    std::unique_lock lock(mutex_, std::adopt_lock);
    const Time now = clock_.exactly_now();
    told_alarm_ = Time::never();  // it may have come
    if (offered) policy_.on_core_returned(*offered, now);
    offered.reset();
    const Served served = try_to_serve(look, now);
    again = ((served.received && !served.woke) || policy_.should_look_again(now) ||
             link_->leaves_some()) &&
            !helper_->is_stopping();
    look = Look::kLikely;
    lock.unlock();
    if (!again || (served.received && !served.woke)) continue;
    offered = now;
    ::sched_yield();
  }
}

// Where memory is missing, what is left stays for the next time.
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
  // What a timer waits for may have come already.
  if (!served.received && device_time(now) >= device_.next_timer())
    (void)receive_batch(Look::kEverywhere, now);
  const bool timed = is_due(now) && run_due_timers(now);
  served.woke = take_outputs(now);
  if (timed || now >= holding_.deadline())
    send_frames(now);
  else if (served.received)
    send_or_await_reply(now);
  tell_helper();
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
  helper_->abandon();
}

}  // namespace verbena::host
