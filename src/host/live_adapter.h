// LiveAdapter: the Adapter of one address: Device, Link, lock, helper thread, and the policy that
// says who receives. See adapter.h for the contract. Invariant: between a frame's poll from the
// device and the link's flush nothing else is called on the device, so that payloads stay where
// they are.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "host/adapter.h"
#include "host/cm/live_connection_manager.h"
#include "host/events/event_delivery.h"
#include "host/events/port_watch.h"
#include "host/instruments.h"
#include "host/links/fabric/fabric_link.h"
#include "host/local/local_path.h"
#include "host/os/quick_clock.h"
#include "host/progress/fetch_ahead.h"
#include "host/progress/helper_alarm.h"
#include "host/progress/holding_policy.h"
#include "host/progress/progress_policy.h"
#include "host/progress/waiter_sleep.h"
#include "host/progress/waking_mutex.h"
#include "host/stats/stats_port.h"
#include "host/stream_side.h"

namespace verbena::host {

class LiveAdapter final : public Adapter {
 public:
  [[nodiscard]] static Expected<std::shared_ptr<LiveAdapter>> open(const LocalAddress& address);
  // Takes the link over and starts the helper thread. `local`, if any: config.local are its ports.
  // `fabric`: the link, if it leads into a simulated network.
  [[nodiscard]] static Expected<std::shared_ptr<LiveAdapter>> start(
      const DeviceConfig& config, std::unique_ptr<Link> link,
      std::unique_ptr<LocalPath> local = nullptr, FabricLink* fabric = nullptr);
  ~LiveAdapter() override;

  [[nodiscard]] u32 poll_cq(CompletionQueue* cq, std::span<CQE> out) override;
  void request_notification(CompletionQueue* cq, NotifyOn on) override;
  [[nodiscard]] Wait begin_wait() override;
  [[nodiscard]] Wait receive_in_wait(const std::function<bool()>& has_event) override;
  [[nodiscard]] Woken sleep_in_wait(int event) override { return waiter_sleep_.sleep(event); }
  void end_wait(Wait from) override;
  void receive_arrived() override;
  void wait_for_wakes() override;
  [[nodiscard]] Status attach_multicast(QueuePair* qp, const GID& group) override;
  [[nodiscard]] Status detach_multicast(QueuePair* qp, const GID& group) override;
  void detach_from_all(QueuePair* qp) override;
  void add_port_listener(EventTarget* listener) override;
  void remove_port_listener(EventTarget* listener) override;
  // From now on, answers questions for statistics (stats_port.h). Call it once.
  void open_stats(const LocalAddress& address);
  [[nodiscard]] Expected<void> set_faults(std::vector<faults::Rule> rules, u64 seed) override;
  [[nodiscard]] faults::FaultFilter* faults() override { return instruments_.filter(); }
  [[nodiscard]] std::optional<ExportPlace> export_place() override;
  [[nodiscard]] Expected<std::shared_ptr<ProcessMemory>> exporter_at(
      const ExportPlace& place) override;
  [[nodiscard]] std::optional<CommonMemory> common_memory(std::span<const u8> memory) override {
    return local_ != nullptr ? local_->common_memory(memory) : std::nullopt;
  }
  [[nodiscard]] ConnectionManager& connections() override {
    if (stream_side_ != nullptr) return stream_side_->connections();
    return connections_;
  }
  [[nodiscard]] const FabricPortAttributes* subnet_port() override;
  [[nodiscard]] Device& device() override { return device_; }

  // The process ends, or has forked and this is the child. leave() and abandon() as in Link.
  void leave_at_exit();
  void lock_for_fork() { mutex_.lock_after_wakes(); }
  void unlock_after_fork() { mutex_.unlock(); }
  void abandon_in_child();

  [[nodiscard]] const LinkCounters& link_counters() const { return link_->counters(); }
  [[nodiscard]] u64 helper_wakeups() const { return alarm_.thread()->wakeups(); }

 protected:
  [[nodiscard]] Time lock(Clock clock) override;
  [[nodiscard]] Time device_now(Time real) override { return device_time(real); }
  void unlock(Time now) override;
  void flush_and_unlock(Time now) override;
  void publish_and_unlock(Time now) override;

 private:
  LiveAdapter(const DeviceConfig& config, std::unique_ptr<Link> link,
              std::unique_ptr<LocalPath> local)
      : local_(std::move(local)),
        device_(config),
        connections_(*this, device_),
        link_(std::move(link)),
        policy_(config.transport == Transport::kIWARP ? Completes::kWhenSent
                                                      : Completes::kWhenAnswered) {
    if (local_ != nullptr) local_->processes().list_in(mutex_.wakes());
  }

  [[nodiscard]] static Expected<std::shared_ptr<LiveAdapter>> open_in_fabric(
      const LocalAddress& address, const FabricPlace& place);
  [[nodiscard]] static Expected<std::shared_ptr<LiveAdapter>> open_on_nic(
      const LocalAddress& address, const std::string& path);
  [[nodiscard]] static Expected<std::shared_ptr<LiveAdapter>> open_iwarp(
      const LocalAddress& address, const std::optional<EncryptionSettings>& encryption);
  [[nodiscard]] static Expected<std::shared_ptr<LiveAdapter>> open_iwarp_on_nic(
      const LocalAddress& address, const std::string& path);
  struct StreamParts;
  [[nodiscard]] static Expected<std::shared_ptr<LiveAdapter>> start_iwarp(
      const DeviceConfig& config, const LocalAddress& address, StreamParts parts);
  [[nodiscard]] Expected<void> apply_environment(const LocalAddress& address);
  // The device's clock, and when it will be so late: the host's but in a fabric.
  [[nodiscard]] Time device_time(Time now) {
    return fabric_ == nullptr ? now : fabric_->device_time(now);
  }
  [[nodiscard]] Time real_time(Time of_device) const {
    return fabric_ == nullptr ? of_device : fabric_->real_time(of_device);
  }

  void explain(std::span<const CQE> cqes);  // those just polled

  // All of these with the lock held.
  u32 poll_with_lock(CompletionQueue* cq, std::span<CQE> out);
  bool receive_batch(Look look, Time now);
  enum class Received : u8 {
    kNothing,       // and no timer was due
    kThroughRings,  // and nothing else was looked at
    kMore,
  };
  Received receive_in_poll(Look look);
  // For a thread that waits for an event. The first look is where `look` says.
  Wait look_and_sleep(const std::function<bool()>& has_event, Look look);
  enum class Looked : u8 { kEvent, kEventsOfOthers, kLong };  // why look_until() returned
  Looked look_until(const std::function<bool()>& has_event, Look look);
  bool begin_sleep();
  Wait leave_to_others();
  void leave_wait(Time now);
  [[nodiscard]] PollResult result_of_poll(u32 count, bool received) const;
  void take_frames(Time now);
  Reception take_frame(const IngressFrame& frame, Time now);
  bool run_due_timers(Time now);  // if is_due()
  bool run_device_timers(Time now);
  void drain(Time now);
  void send_or_await_reply(Time now);
  bool awaits_reply_in_rings(Time now);
  void note_local_reply(Time now);
  // Returns true if the call was in the kernel.
  bool note_return(Time began);
  bool run_deferred(Time now);
  void run_deferred_in_poll();
  // Takes the device's outputs, except its frames. Returns true if a program was notified of a
  // completion.
  bool take_outputs(Time now);
  struct Appended {
    bool any = false, requests = false;  // at all; other than acknowledgements
    OutgoingRings::Taken local{};        // what needs no frames
  };
  Appended append_frames(Time now);
  [[nodiscard]] bool has_frames(Time now);
  [[nodiscard]] bool poll_frame(Time now);  // into frame_
  [[nodiscard]] Time next_send() const;
  void send_frames(Time now);
  Status detach_with_lock(QueuePair* qp, const GID& group);
  // Call it after anything that may have changed the due times or the thread that is to look.
  void tell_helper();
  void tell_helper_after_call(Time now);  // receives what has come through memory itself
  // Returns true if something has arrived for which no descriptor wakes the helper.
  [[nodiscard]] bool refresh_helper();
  void note_requested();
  void tell_helper_of_device();  // the same, if only the device's timers may have changed
  [[nodiscard]] bool is_due(Time now) { return now >= due_ && find_due(now); }
  [[nodiscard]] bool find_due(Time now);
  [[nodiscard]] Time device_due() const;
  [[nodiscard]] Time others_due() const;
  void stay_once();

  void serve();  // the helper thread, at a wakeup
  struct Served {
    bool received = false, woke = false;  // frames; a program
  };
  void lock_as_helper();
  Served serve_once(Look look, Time now);
  Served try_to_serve(Look look, Time now);
  void serve_stats();  // the helper thread, at a question

  WakingMutex mutex_;
  std::atomic<u32> asleep_ = 0;       // threads, until their events
  std::unique_ptr<LocalPath> local_;  // nullptr: none
  Device device_;
  LiveConnectionManager connections_;
  std::unique_ptr<Link> link_;
  FabricLink* fabric_ = nullptr;  // below it all, where frames go through a simulated fabric
  std::unique_ptr<StreamSide> stream_side_;  // on link_, where QPs have TCP connections: iWARP
  std::optional<StatsPort> stats_;
  EventDelivery events_{mutex_.wakes()};
  PortWatch port_watch_{device_, events_};
  ProgressPolicy policy_;
  HoldingPolicy holding_;
  bool holds_in_rings_ = false;    // acknowledgements, and the link holds nothing
  bool awaited_in_rings_ = false;  // what a reply is awaited for was no frame
  EgressFrame frame_;
  u64 frames_ = 0;  // that have come to the device
  FetchAhead ahead_;
  QuickClock clock_;
  Time due_;  // the first timer of all, and what is held to a rate; Time(): not known
  Instruments instruments_{device_, link_, local_.get(), clock_};
  HelperAlarm alarm_{policy_, holding_};
  WaiterSleep waiter_sleep_{link_->descriptors()};
};

}  // namespace verbena::host
