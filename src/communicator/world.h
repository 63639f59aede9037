// World: all that this process shares among its communicators of one job: devices, connections to
// the other ranks, memory, the star of TCP connections, and the thread that goes on with operations
// while the program does something else.
//
// One lock guards everything below it. Whoever waits for a request makes progress itself; the
// thread does so only while nobody waits and operations are under way. Else the thread sleeps on
// the star.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "communicator/bootstrap/star.h"
#include "communicator/communicator.h"
#include "communicator/huge_pages.h"
#include "communicator/transfers.h"
#include "communicator/verbs/connection.h"
#include "communicator/verbs/stream_mesh.h"

namespace verbena::coll {

struct WorldConfig {
  Rendezvous at{};
  const verbena_coll_store* store = nullptr;
  double timeout_s = 30;
  std::string devices{};
  Choice choice{};
};

class World final : public std::enable_shared_from_this<World>, public Transfers::Acknowledger {
 public:
  [[nodiscard]] static Expected<std::shared_ptr<World>> open(const WorldConfig& config);
  ~World() override;

  // The lock. A thread that makes progress gives it up where another wants it.
  class Guard {
   public:
    explicit Guard(World& world) : lock_(world.mutex_, std::defer_lock) {
      ++world.wanted_;
      lock_.lock();
      --world.wanted_;
    }

   private:
    friend class World;
    std::unique_lock<std::mutex> lock_;
  };
  [[nodiscard]] u32 rank() const { return rank_; }
  [[nodiscard]] u32 size() const { return static_cast<u32>(connections_.size()); }
  [[nodiscard]] const Choice& choice() const { return choice_; }
  [[nodiscard]] double timeout_s() const { return timeout_s_; }

  // --- with the lock held
  [[nodiscard]] std::shared_ptr<Communicator> make_communicator(u32 id, std::vector<u32> members);
  void remove_communicator(Communicator& comm);
  [[nodiscard]] bool has_communicators() const { return !comms_.empty(); }
  [[nodiscard]] Connection& connection(u32 rank) { return *connections_[rank]; }
  [[nodiscard]] bool can_send(u32 rank) const {
    return connections_[rank]->can_send() && backlog_[rank].empty();
  }
  // Memory of another rank that is mapped here; nullptr: it must be read by the device.
  [[nodiscard]] const u8* shared_memory(u32 rank, u64 address, u64 bytes) const {
    const PeerArena* const arena = peer_arenas_[rank].get();
    return arena == nullptr ? nullptr : arena->find(address, bytes);
  }
  [[nodiscard]] Transfers& transfers() { return *transfers_; }
  // A short message that must not wait for room here: it is kept until there is some.
  void tell(u32 rank, const Header& header, std::span<const u8> payload = {});
  void tell_all(const Notice& notice) { star_.send_to_all(notice); }
  // An offer of memory: staged if it is short and there is room, else registered by the caller, who
  // then gives the registration. Returns the token, or nullopt if it must be registered.
  struct Offered {
    Offer offer;
    u32 token;
  };
  [[nodiscard]] std::optional<Offered> offer(std::shared_ptr<Request> owner, u32 peer,
                                             const u8* from, u64 bytes,
                                             const Registration* registration);
  [[nodiscard]] const Registration* registered(const void* address, u64 bytes) const;
  [[nodiscard]] Expected<std::unique_ptr<Registration>> register_memory(const void* address,
                                                                        u64 bytes);
  [[nodiscard]] Error add_registration(void* address, u64 bytes);
  [[nodiscard]] Error remove_registration(const void* address);
  // The rank is lost: its queue pairs are broken off, and its communicators fail.
  void lose(u32 rank, const std::string& how);

  // Makes progress until the request is done. Returns its error. Others get the lock meanwhile.
  [[nodiscard]] Error wait(Guard& guard, const Request& request);

  // --- without the lock
  Error wait(const Request& request);
  // Until `condition` returns true, or the time is over; called with the lock held.
  bool wait_until(i64 deadline, const std::function<bool()>& condition);
  // Something was started that nobody waits for.
  void wake_thread();
  void make_progress();  // a little
  // Ends as a rank that has nothing more to do.
  void leave();

 private:
  World() = default;
  struct OfferRecord {
    std::shared_ptr<Request> owner{};
    u32 peer = 0, buffer = BufferPool::kNone, generation = 0;
    bool is_open = false;
  };
  struct Told {
    Header header;
    std::vector<u8> payload;
  };

  [[nodiscard]] Expected<void> prepare(const WorldConfig& config);
  [[nodiscard]] Expected<void> connect(const WorldConfig& config, i64 deadline);
  [[nodiscard]] Topology topology_of(const std::vector<u32>& members) const;

  // Returns whether anything happened.
  bool progress();
  bool poll_queues();
  bool poll_links();
  [[nodiscard]] Expected<void> share_memory(const std::vector<std::string>& cards, i64 deadline);
  void on_completion(u32 rail, const ibv_wc& completion);
  void on_failed_completion(u32 rail, const ibv_wc& completion);
  void on_message(u32 from, const Header& header, std::span<const u8> payload);
  void on_taken(u32 token);
  void on_all_read(u32 peer, u32 token) override;
  void on_room(u32 rank);
  void drop_offers_to(u32 rank);

  void keep_house(i64 now);
  void check_operation(Communicator& comm, i64 now);
  void decide_who_is_missing(Communicator& comm, Operation& operation);
  void read_star();
  void on_notice(const Notice& notice);
  void on_left(u32 rank);
  void answer(const Notice& question);
  [[nodiscard]] bool has_work() const;
  bool wait_until(std::unique_lock<std::mutex>& lock, i64 deadline,
                  const std::function<bool()>& condition);
  class Patience;
  [[nodiscard]] i64 spin_time() const;
  void let_others(std::unique_lock<std::mutex>& lock);
  void sleep(std::unique_lock<std::mutex>& lock, i64 until);
  void say_asleep();
  void say_awake();
  void sleep_on_star(std::unique_lock<std::mutex>& lock);
  void run_thread();

  std::mutex mutex_;
  u32 rank_ = 0;
  double timeout_s_ = 30;
  Choice choice_{};
  bool is_crowded_ = false;  // more ranks on this host than cores
  std::vector<std::unique_ptr<Rail>> rails_{};
  std::unique_ptr<Arena> arena_{};
  std::vector<std::unique_ptr<PeerArena>> peer_arenas_{};  // nullptr if not shared
  SleepWord* sleep_word_ = nullptr;
  std::vector<u8*> rings_{};  // to each rank, in the arena
  u32 polls_ = 0;
  bool links_only_ = false;                                 // all peers are linked
  std::unique_ptr<StreamMesh> streams_{};                   // if a rail is an iWARP device
  std::vector<std::unique_ptr<Connection>> connections_{};  // the own place: nullptr
  std::unique_ptr<Transfers> transfers_{};
  std::unique_ptr<BufferPool> staging_{};
  std::vector<std::unique_ptr<Registration>> registrations_{};
  HugePages huge_pages_{};
  std::vector<OfferRecord> offers_{};
  std::vector<u32> free_offers_{};
  std::vector<std::deque<Told>> backlog_{};
  std::vector<u64> hosts_{};  // a number for the host of each rank
  Star star_{};
  std::vector<bool> gone_{};  // ranks that died or left
  std::map<u32, Communicator*> comms_{};
  std::map<u32, std::vector<std::pair<u32, Told>>> orphans_{};  // messages of communicators to come
  i64 house_at_ = 0, ping_at_ = 0;

  std::atomic<u32> wanted_{0};  // threads that want the lock
  u32 waiters_ = 0, sleepers_ = 0;
  bool ends_ = false, thread_sleeps_ = false;
  int wake_fd_ = -1;
  std::thread thread_{};
};

}  // namespace verbena::coll
