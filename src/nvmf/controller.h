// Controller: what one host sees of a subsystem: properties, features, logs, asynchronous events,
// and the admin commands. NVM Express Base 2.0, 3 and 5; NVMe over Fabrics 1.1a.
//
// Sans-IO. on_admin() decides a command; the target transfers its data and sends the response.
// Contract: after any on_*(), drain poll_async_event(); is_expired() is asked at next_timer().
// The thread of the admin queue calls all of it; threads of I/O queues call is_ready(),
// on_traffic(), has_ended(), note_success(), note_error(), add_queue() and remove_queue(), and read
// what is const.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>

#include "nvmf/subsystem.h"
#include "nvmf/target_stats.h"
#include "wire/nvme/discovery.h"

namespace verbena::nvmf {

struct ControllerLimits {
  u16 max_queue_entries = 128;
  u16 max_io_queues = 16;
  u32 in_capsule_bytes = 8192;
  u8 max_transfer_pages_log2 = 8;  // 1 MiB
};

struct AdminAnswer {
  nvme::Status status = nvme::Status::kSuccess;
  u64 result = 0;
  std::vector<u8> data{};        // for the host
  bool is_pending = false;       // Asynchronous Event Request: answered later
  std::optional<u16> aborted{};  // the CID of an Asynchronous Event Request that ends now
};

class Controller {
 public:
  // `subsystem` outlives it; nullptr: a discovery controller.
  Controller(const Subsystem* subsystem, const ControllerLimits& limits, u16 id,
             const nvme::ConnectData& host, Duration keep_alive, Time now);

  [[nodiscard]] u16 id() const { return id_; }
  [[nodiscard]] const Subsystem* subsystem() const { return subsystem_; }
  [[nodiscard]] const nvme::ConnectData& host() const { return host_; }
  [[nodiscard]] bool is_ready() const { return (status_ & nvme::kCSTSReady) != 0; }
  [[nodiscard]] bool is_discovery() const { return subsystem_ == nullptr; }

  // Property Get and Set are Fabrics commands; the others are of the admin queue.
  [[nodiscard]] AdminAnswer on_property(const nvme::Command& command);
  // `discovery`: the log page for this host.
  [[nodiscard]] AdminAnswer on_admin(const nvme::Command& command, Time now,
                                     std::span<const nvme::DiscoveryEntry> discovery);
  // Any command of the host shows that it lives: Traffic Based Keep Alive. Base 2.0, 3.9.
  void on_traffic(Time now) { last_traffic_.store(now, std::memory_order_relaxed); }
  void on_namespace_changed(u32 nsid);
  void on_discovery_changed();
  void note_success(const CommandCounts& command);  // of an I/O queue
  void note_error(u16 sq_id, const nvme::Command& command, nvme::Status status);

  // An Asynchronous Event Request to be answered, with its result.
  struct AsyncEvent {
    u16 cid = 0;
    u32 result = 0;
  };
  [[nodiscard]] std::optional<AsyncEvent> poll_async_event();
  [[nodiscard]] Time next_timer() const;  // when the keep-alive timer expires
  [[nodiscard]] bool is_expired(Time now) const { return now >= next_timer(); }

  [[nodiscard]] CommandCounts counts() const;
  // False: an I/O queue of that number is connected.
  [[nodiscard]] bool add_queue(u16 qid);
  void remove_queue(u16 qid);
  [[nodiscard]] bool has_queues() const;
  void end() { has_ended_ = true; }
  [[nodiscard]] bool has_ended() const { return has_ended_; }

 private:
  struct Event {
    u8 type = 0, info = 0, log = 0;
    u32 bit = 0;  // in the Asynchronous Event Configuration
  };
  struct ErrorEntry {
    u64 count = 0, lba = 0;
    u16 sq_id = 0, cid = 0, status = 0;
    u32 nsid = 0;
  };

  [[nodiscard]] u64 capabilities() const;
  void set_configuration(u32 value);
  [[nodiscard]] AdminAnswer identify(const nvme::Command& command) const;
  [[nodiscard]] std::vector<u8> identify_controller() const;
  [[nodiscard]] AdminAnswer identify_namespace(const nvme::Command& command) const;
  [[nodiscard]] AdminAnswer get_log(const nvme::Command& command, Time now,
                                    std::span<const nvme::DiscoveryEntry> discovery);
  [[nodiscard]] std::vector<u8> smart_log(Time now) const;
  [[nodiscard]] std::vector<u8> error_log() const;
  [[nodiscard]] std::vector<u8> discovery_log(std::span<const nvme::DiscoveryEntry> entries) const;
  [[nodiscard]] AdminAnswer set_features(const nvme::Command& command);
  [[nodiscard]] AdminAnswer get_features(const nvme::Command& command) const;
  [[nodiscard]] AdminAnswer abort(const nvme::Command& command);
  void raise(const Event& event);

  const Subsystem* const subsystem_;
  const ControllerLimits limits_;
  const u16 id_;
  const nvme::ConnectData host_;
  const Time created_;
  Duration keep_alive_;
  std::atomic<Time> last_traffic_;
  std::atomic<u32> status_{0};
  std::atomic<bool> has_ended_{false};
  u32 configuration_ = 0;
  std::map<u8, u32> features_;
  std::deque<u16> event_requests_;
  std::deque<Event> events_;
  u32 masked_events_ = 0;     // bits of those that were reported and whose log was not read
  mutable std::mutex mutex_;  // of the following three
  CommandCounts counts_;
  std::vector<u16> queues_;  // I/O queues that are connected
  std::deque<ErrorEntry> errors_;
  std::vector<u32> changed_namespaces_;
};

// NVMe lists of discovery have a generation, which changes with them.
inline constexpr u64 kDiscoveryGeneration = 1;

}  // namespace verbena::nvmf
