// World: simulated time, devices on simulated wires, and nothing else: one seed gives one course of
// events, bit for bit. It drives a device as its contract has it (device/device.h): after every
// call frames, completion events and asynchronous events are drained and the timer is read again.
//
//   World world(seed);
//   Node& a = world.add_node({...});   Node& b = world.add_node({...});
//   world.join(a, b, {.rate = gbps(100), .delay = us(1), .faults = {.loss = 0.01}});
//   ... post work ...
//   ASSERT_TRUE(world.run_until_idle(sec(10))) << world.report();
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "tests/sim/timeline.h"

namespace verbena::sim {

class World;

// How a port takes frames from its device.
enum class Egress : u8 {
  kPaced,  // one when the wire is free: the device keeps the queue
  kEager,  // all at once: the queue is behind the device
};

struct NodeConfig {
  DeviceConfig device{};
  Egress egress = Egress::kPaced;
};

// A device, its port, and the application's hooks.
class Node {
 public:
  Node(World& world, u32 index, const NodeConfig& config);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  u32 index() const { return index_; }
  // For calls that take no time. Those that do go through the functions below.
  Device& device() { return device_; }
  const Link& link() const { return *link_; }
  Link& link() { return *link_; }

  [[nodiscard]] PostError post_send(QueuePair* qp, const SendWR& wr);
  [[nodiscard]] PostError post_receive(QueuePair* qp, const RecvWR& wr);
  [[nodiscard]] PostError post_srq_receive(SharedReceiveQueue* srq, const RecvWR& wr);
  [[nodiscard]] Status modify_qp(QueuePair* qp, const QPModify& change);
  // Takes all there is, through the timeline.
  void request_notification(CompletionQueue* cq);                             // of any completion
  [[nodiscard]] std::vector<CQE> poll(CompletionQueue* cq, u32 at_most = 0);  // 0: all

  // Called after anything has gone into or come out of the device, at the same time.
  std::function<void()> on_activity;
  // A CQ's notification (its user pointer).
  std::function<void(void*)> on_completion_event;
  std::vector<AsyncEvent> events;  // all, in order

 private:
  friend class World;
  void settle();
  void drain_events();
  void transmit();
  bool transmit_one();
  void set_timer();
  void receive(const IngressFrame& frame);

  World& world_;
  u32 index_;
  Egress egress_;
  Device device_;
  Node* peer_ = nullptr;
  std::unique_ptr<Link> link_;  // towards the peer
  Time wire_free_;
  bool transmit_scheduled_ = false;
  Time timer_scheduled_ = Time::never();
  u16 next_identification_ = 1;
  EgressFrame frame_;
};

class World {
 public:
  explicit World(u64 seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  u64 seed() const { return seed_; }
  PRNG& prng() { return prng_; }
  Time now() const { return now_; }
  Timeline& timeline() { return timeline_; }
  // Hosts that are added later use late memory: Arena::use_late_memory().
  void use_late_memory() { has_late_memory_ = true; }
  bool has_late_memory() const { return has_late_memory_; }

  Node& add_node(const NodeConfig& config);
  void join(Node& a, Node& b, const LinkConfig& config);
  void at(Time when, std::function<void()> what);
  void after(Duration wait, std::function<void()> what) { at(now_ + wait, std::move(what)); }

  // Returns true if no event is left, and false if `limit` or kMaxEvents events have passed first.
  [[nodiscard]] bool run_until_idle(Duration limit);
  // Ends the run: run_until_idle() returns false.
  void stop() { stopped_ = true; }
  // Runs for `time` exactly, whatever events are left.
  void run_for(Duration time);
  // How to see a failure again, and what happened last.
  [[nodiscard]] std::string report() const;

 private:
  static constexpr u64 kMaxEvents = 20'000'000;
  struct Event {
    Time at;
    u64 order;
    std::function<void()> what;
  };
  void run_one();
  static bool later(const Event& a, const Event& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }

  u64 seed_;
  PRNG prng_;
  Time now_;
  u64 events_added_ = 0;
  bool stopped_ = false;
  bool has_late_memory_ = false;
  std::vector<Event> queue_;  // a heap by later()
  std::vector<std::unique_ptr<Node>> nodes_;
  Timeline timeline_;
};

}  // namespace verbena::sim
