// LiveNode: application::Node (application/node.h) on libibverbs and librdmacm, whichever the
// loader finds: Verbena's, or those of the system with a card. One thread uses a node.
//
// All connections share one completion queue. A work request's wr_id has the connection's number,
// so completions of a connection that has ended are recognized and dropped. Work requests that a
// program posts between two calls of poll(), wait() or spin() go to the device as lists, of
// kMaxBatch at most: a list rings the peer's doorbell once. What the send queue has no room for
// follows when earlier requests are complete. The device and its protection domain are known once
// an address is bound or resolved: `local` names the address.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "application/node.h"
#include "base/ring.h"
#include "verbs/page_memory.h"

namespace verbena::verbs {

class LiveNode final : public application::Node {
 public:
  // An error in words for the user.
  using Opened = tl::expected<std::unique_ptr<LiveNode>, std::string>;
  // `local`: an address of the device. `peer`: the device is that from which this one is reached.
  [[nodiscard]] static Opened open_local(const application::Address& local);
  [[nodiscard]] static Opened open_towards(const application::Address& peer);
  // For another thread, on the device and with the memory keys of `other`, which outlives it.
  [[nodiscard]] static Opened open_beside(LiveNode& other);
  ~LiveNode() override;
  LiveNode(const LiveNode&) = delete;
  LiveNode& operator=(const LiveNode&) = delete;

  [[nodiscard]] Time now() const override;
  void set_alarm(Time at) override { alarm_ = at; }
  [[nodiscard]] Result<application::Region> register_bytes(std::span<u8> bytes,
                                                           application::Access access) override;
  [[nodiscard]] Result<application::Region> allocate(u64 bytes, application::Content content,
                                                     application::Access access) override;
  void deregister(const application::Region& region) override;
  [[nodiscard]] Status listen(const application::Address& at,
                              const application::QueueDepths& depths) override;
  [[nodiscard]] Result<application::ConnectionId> connect(
      const application::Address& to, const application::QueueDepths& depths,
      std::span<const u8> private_data) override;
  void accept(application::ConnectionId id, std::span<const u8> private_data) override;
  void reject(application::ConnectionId id, std::span<const u8> private_data) override;
  void disconnect(application::ConnectionId id) override;
  void post_receive(application::ConnectionId id, u32 work,
                    const application::Slice& into) override;
  void post(application::ConnectionId id, const application::Work& work) override;
  [[nodiscard]] bool poll(application::Event& out) override;

  // Returns when poll() may have an event, when one of the program's own `descriptors` is readable,
  // at the alarm, or after `at_most`. True: the descriptors were looked at and one is readable.
  bool wait(Duration at_most, std::span<const int> descriptors = {});
  // Connection requests for which `choose` returns another node, made by open_beside(), become
  // kConnectRequest there. wait() of that node has to be woken.
  using Choose = std::function<LiveNode*(std::span<const u8> private_data)>;
  void share_requests(Choose choose) { choose_ = std::move(choose); }

  // Polls for some microseconds and never sleeps: the least latency, at the cost of a core.
  void spin();

 private:
  enum class State : u8 { kResolving, kConnecting, kRequested, kConnected };
  struct Receive {
    u32 id = 0;
    application::Slice into;
  };
  struct Connection {
    rdma_cm_id* cm = nullptr;
    State state = State::kResolving;
    application::QueueDepths depths{};
    std::vector<Receive> early{};  // receives that were posted before the queue pair existed
    std::vector<u8> private_data{};
    u32 completions = 0;
    u32 send_room = 0;         // free places in the device's send queue
    u32 unsignalled = 0;       // work requests since the last signalled one
    u32 uncompleted = 0;       // likewise, of those that the device has
    Ring<u32> signalled{0};    // of each signalled one that the device has: those it completes
    bool is_unposted = false;  // it is in unposted_
    std::vector<ibv_send_wr> sends{};     // posted by the program, not yet to the device
    std::vector<ibv_sge> send_slices{};   // theirs, in order
    std::vector<ibv_recv_wr> receives{};  // likewise, one slice each
    std::vector<ibv_sge> receive_slices{};
  };
  struct Queued {
    application::Event event;
    std::vector<u8> private_data;
  };

  LiveNode() = default;
  [[nodiscard]] std::string prepare(rdma_cm_id* bound);
  [[nodiscard]] bool make_queue_pair(Connection& connection);
  [[nodiscard]] bool make_room(u32 completions);
  Connection* find(application::ConnectionId id);
  void post_receive_now(Connection& connection, application::ConnectionId id,
                        const Receive& receive);
  void note_unposted(application::ConnectionId id, Connection& connection);
  void flush_posts();
  void flush_posts_of(application::ConnectionId id);
  [[nodiscard]] static bool post_list(Connection& connection);
  [[nodiscard]] static bool post_sends(Connection& connection);
  void on_sent(application::ConnectionId id, Connection& connection);
  [[nodiscard]] static bool must_signal(Connection& connection, bool is_reported);
  void take_cm_events();
  void on_cm_event(const rdma_cm_event& event);
  void on_request(const rdma_cm_event& event);
  struct Request {
    rdma_cm_id* cm = nullptr;
    application::QueueDepths depths{};
    u16 port = 0;
    std::vector<u8> private_data{};
  };
  void begin_request(const Request& request);
  static void give(LiveNode& to, Request request);
  void take_given();
  void on_resolved(application::ConnectionId id, Connection& connection);
  void on_connection_event(application::ConnectionId id, const rdma_cm_event& event);
  void end(application::ConnectionId id, application::Event::Kind kind,
           std::span<const u8> private_data);
  [[nodiscard]] bool linger();  // true: there is an event
  void take_completions();
  void on_completion(const ibv_wc& completion);
  void tell(application::Event event, std::span<const u8> private_data = {});
  [[nodiscard]] rdma_conn_param parameters(std::span<const u8> private_data) const;
  [[nodiscard]] int access_flags(application::Access access) const;

  rdma_event_channel* events_channel_ = nullptr;
  rdma_cm_id* anchor_ = nullptr;  // keeps the device bound
  ibv_context* device_ = nullptr;
  ibv_pd* pd_ = nullptr;
  bool owns_pd_ = true;
  ibv_comp_channel* completion_channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  u32 cq_capacity_ = 0, cq_used_ = 0;
  u8 read_depth_ = 1, read_resources_ = 1;
  bool is_iwarp_ = false;
  bool is_armed_ = false;
  u32 max_inline_ = 0;
  std::map<u32, std::pair<ibv_mr*, PageMemory>> regions_;  // by L_Key
  struct Listener {
    rdma_cm_id* cm = nullptr;
    application::QueueDepths depths;
    u16 port = 0;
  };
  std::vector<Listener> listeners_;
  Choose choose_;
  std::vector<std::pair<LiveNode*, Request>> leaving_;  // until their event is acknowledged
  std::mutex given_mutex_;
  std::vector<Request> given_;  // by other nodes' threads
  std::atomic<bool> is_given_{false};
  std::map<application::ConnectionId, Connection> connections_;
  std::vector<application::ConnectionId> unposted_;  // with requests for flush_posts()
  std::vector<rdma_cm_id*> ended_;                   // to be destroyed
  application::ConnectionId next_connection_ = 1;
  Time last_completion_;
  u32 spins_ = 0;
  Time alarm_ = Time::never();
  std::deque<Queued> queued_;
  std::vector<u8> private_data_;  // of the event that was polled last
  std::array<ibv_wc, 32> completions_{};
};

}  // namespace verbena::verbs
