// Agent: a process's part in transfers: its devices, registered memory, metadata of others, links
// to them, and one thread that serves the links while no other thread does.
//
// Threads: one lock guards everything. A thread that waits polls the devices itself for a short
// time, then sleeps until the service thread has news.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/link.h"
#include "agent/turn_lock.h"
#include "communicator/clock.h"

namespace verbena::agent {

struct AgentOptions {
  std::string devices{};
  std::string listen_host{};  // "": the first device's address
  u16 listen_port = 0;
  LinkSettings link{};
};

struct Descriptors {
  std::span<const verbena_descriptor> local{}, remote{};
};

struct Counters {
  u64 bytes = 0, transfers = 0, failed = 0, lanes_up = 0, lanes_lost = 0;
};

class Agent {
 public:
  static constexpr std::size_t kMaxNotifications = 65536;

  [[nodiscard]] static Expected<std::unique_ptr<Agent>> make(const std::string& name,
                                                             const AgentOptions& options);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  [[nodiscard]] const std::string& name() const { return self_.name; }
  [[nodiscard]] const std::string& address() const { return address_; }

  [[nodiscard]] Expected<u64> add_region(void* address, u64 length, unsigned rights);
  [[nodiscard]] Expected<void> remove_region(u64 id);

  [[nodiscard]] std::string metadata();
  [[nodiscard]] Expected<std::string> load_metadata(std::string_view bytes);
  [[nodiscard]] Expected<std::string> fetch_metadata(const std::string& address, i64 deadline);
  [[nodiscard]] Expected<void> forget(const std::string& peer);
  [[nodiscard]] Expected<void> connect(const std::string& peer, i64 deadline);

  // `state` has the operation, priority, notification and peer.
  [[nodiscard]] Expected<void> prepare(TransferState& state, const Descriptors& lists);
  [[nodiscard]] Expected<void> post(const std::shared_ptr<TransferState>& state);
  // These take a transfer that was posted.
  [[nodiscard]] Expected<void> advance(TransferState& state, u64 blocks);
  [[nodiscard]] int status(TransferState& state);
  [[nodiscard]] int wait(TransferState& state, i64 deadline);
  void cancel(TransferState& state);

  [[nodiscard]] std::optional<Notification> next_notification(const std::string& from, i64 deadline,
                                                              u64 room);
  [[nodiscard]] Counters count();

 private:
  using Lock = std::unique_lock<TurnLock>;
  Agent() = default;
  [[nodiscard]] Expected<void> open(const std::string& name, const AgentOptions& options);

  // --- with the lock
  [[nodiscard]] Link* link_to(const std::string& peer, u64 incarnation);
  [[nodiscard]] Expected<const transfer::Metadata*> metadata_of(const std::string& peer) const;
  [[nodiscard]] transfer::Metadata own_metadata() const;
  [[nodiscard]] Expected<std::vector<transfer::Block>> local_blocks(
      std::span<const verbena_descriptor> list, TransferState& state) const;
  void progress();
  bool poll_devices();
  void take_from(Link& link);
  void bury_dead_links();
  void arm();
  template <typename Done>
  bool drive(Lock& lock, i64 deadline, Done is_done);

  // --- the service thread
  void serve();
  void wake();
  void collect_events();
  void admit_newcomers();
  void serve_newcomers();
  void serve_channels();
  void serve_streams();
  [[nodiscard]] bool serve_newcomer(Channel& channel);
  [[nodiscard]] i64 next_alarm() const;

  std::vector<std::unique_ptr<coll::Rail>> rails_{};
  std::unique_ptr<coll::StreamConnector> streams_{};  // if a rail is an iWARP device
  Hello self_{};
  AgentOptions options_{};
  coll::Descriptor listener_{}, wake_{};
  std::string host_{}, address_{};
  u16 port_ = 0;

  TurnLock lock_{};
  std::condition_variable_any changed_{};
  std::map<u64, std::unique_ptr<Region>> regions_{};
  u64 next_region_ = 1;
  std::map<std::string, transfer::Metadata> others_{};
  std::map<u32, std::unique_ptr<Link>> links_{};
  std::map<u32, std::string> obituaries_{};  // why the last links died
  u32 next_link_ = 0;
  struct Newcomer {
    Channel channel;
    i64 since;
  };
  std::vector<Newcomer> newcomers_{};
  std::deque<Notification> notifications_{};
  Counters counted_{};
  u64 news_ = 0;  // changes whenever a waiting thread may have what it waits for
  u32 pollers_ = 0, sleepers_ = 0;
  bool is_armed_ = false, is_stopping_ = false;
  std::thread service_{};
};

}  // namespace verbena::agent
