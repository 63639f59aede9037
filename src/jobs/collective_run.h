// CollectiveRun: a schedule done on the hosts of a simulated network. A send is an RDMA WRITE with
// immediate data on an RC QP of its two ranks and lane; what waits for it goes on when it is in the
// receiver's memory. Within a node messages take the NVLink switch instead.
//
// As in NCCL, a sender is ahead of its receiver by `window` messages at most (NCCL_STEPS): it has
// to wait until one has been taken. That news takes no time here. Nor does adding: a GPU's memory
// is faster than its links by far; `step_overhead` is for what it needs before it goes on.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/schedule.h"
#include "fabric/network.h"
#include "jobs/nvlink_ports.h"
#include "jobs/time_spent.h"

namespace verbena::jobs {

struct RunConfig {
  u32 window = 8;  // messages; 1 .. 64
  Duration step_overhead{};
  u8 priority = 3;  // of the data
};

class CollectiveRun final : public fabric::Application {
 public:
  // Messages of the schedule are no longer than ConnectionConfig::kMaxMessageOctets. All arguments
  // outlive the run; `cluster` has as many ranks as the schedule.
  CollectiveRun(const collectives::Schedule& schedule, const Cluster& cluster,
                const RunConfig& config, fabric::Network& network);

  // Every rank begins, now. Then the network runs.
  void start();
  [[nodiscard]] bool finished() const { return unfinished_lanes_ == 0; }
  // What makes it impossible; "": nothing, so far.
  [[nodiscard]] const std::string& mistake() const { return mistake_; }

  // Precondition of all: finished().
  [[nodiscard]] Duration time() const { return finished_at_ - started_at_; }
  [[nodiscard]] const TimeSpent& spent() const { return spent_; }
  [[nodiscard]] u64 network_octets() const { return network_octets_; }  // of messages
  [[nodiscard]] u64 nvlink_octets() const { return nvlink_octets_; }
  [[nodiscard]] u64 messages() const { return messages_; }

  void on_arrival(u32 connection, u32 word, Time now) override;
  void on_sent(u32 connection, Time now) override;
  void on_alarm(u32 word, Time now) override;

 private:
  static constexpr u32 kNone = ~u32{0};
  enum class Waits : u8 { kNot, kMessage, kRoom, kLane, kOverhead };
  struct Lane {
    u64 done = 0;  // steps
    u64 steps = 0;
    Waits waits = Waits::kNot;
    u32 waits_for = kNone;  // a pipe, or a lane of the rank
    TimeSpent spent{};      // until now, along the way that led here
  };
  struct Message {
    Time posted;
    u64 octets = 0;
    Duration ahead{};   // the octets posted at its NIC before it, and its own
    TimeSpent spent{};  // by its sender, until it was posted
  };
  // From one rank to another on one lane.
  struct Pipe {
    u32 from = 0, to = 0, lane = 0;
    u32 connection = kNone;                            // none: by NVLink
    u32 posted = 0, sent = 0, arrived = 0, taken = 0;  // messages; sent: acknowledged
    Duration distance{};
    std::vector<Message> messages{};  // those not taken, by their number modulo the window
  };

  [[nodiscard]] u32 place_of(u32 rank, u32 lane) const { return rank * lanes_ + lane; }
  u32 pipe_of(u32 from, u32 to, u32 lane);
  void add_pipe(u32 from, u32 to, u32 lane);
  [[nodiscard]] Duration distance(const Pipe& pipe) const;
  void ready(u32 place) { ready_.push_back(place); }
  void work();
  void go_on(u32 place);
  bool do_step(u32 place, const collectives::Step& step);
  bool send(u32 place, const collectives::Step& step);
  bool take(u32 place, const collectives::Step& step);
  void post(Pipe& pipe, u32 number, u64 octets, const TimeSpent& spent);
  void on_message(u32 pipe);
  [[nodiscard]] TimeSpent spent_with(const Pipe& pipe, const Message& message) const;
  void wait(u32 place, Waits what, u32 on);
  void wake(u32 place, const TimeSpent& spent);
  void wake_lanes_after(u32 rank, u32 lane);
  void finish_lane(u32 place);

  const collectives::Schedule& schedule_;
  const Cluster& cluster_;
  const RunConfig config_;
  fabric::Network& network_;
  NVLinkPorts nvlink_;
  const u32 lanes_;  // of a rank
  std::vector<Lane> lane_;
  std::vector<Pipe> pipes_;
  std::unordered_map<u64, u32> pipe_numbers_;
  std::vector<u32> pipe_of_connection_;
  std::vector<u64> unsent_octets_;    // posted at a rank's NIC and not arrived
  std::vector<u32> lanes_that_wait_;  // of a rank, for another lane of its
  std::vector<u32> ready_;            // places of lanes that may go on
  std::size_t next_ready_ = 0;
  u64 unfinished_lanes_ = 0;
  std::string mistake_;
  Time started_at_, finished_at_;
  TimeSpent spent_;
  u64 network_octets_ = 0, nvlink_octets_ = 0, messages_ = 0;
};

}  // namespace verbena::jobs
