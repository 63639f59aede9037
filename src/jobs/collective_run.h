// CollectiveRun: a script that runs on the hosts of a simulated network: a collective operation, or
// the program of a job. A send is an RDMA WRITE with immediate data on an RC QP of its two ranks
// and lane. A step that waits for the message continues when the message is in the receiver's
// memory. Within a node messages take the NVLink switch instead. Connections are made before the
// start, as NCCL does. If there are more than kMadeAtStart, a connection is made shortly before its
// first use, and a rank with many connections closes those that it has not used for longest.
//
// As in NCCL, a sender is ahead of its receiver by `window` messages at most (NCCL_STEPS): it waits
// for the notice that a message has been taken, which takes the links' delays, or NVLink's latency.
// Adding takes no time, because a GPU's memory is faster than its links by far; `step_overhead` is
// the time that the GPU needs before it continues.
//
// Each call of the network belongs to one rank, and touches only the data of that rank: its lanes,
// its half of a pipe, and those slots of a pipe's messages that it owns. The sender owns a slot
// until the message is sent, then the receiver owns it, and the sender owns it again when it has
// the notice that the message was taken. So several threads may simulate the ranks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/rank_executor.h"
#include "collectives/script.h"
#include "fabric/network.h"
#include "jobs/host_path/host_side.h"
#include "jobs/latencies.h"
#include "jobs/nvlink_ports.h"
#include "jobs/time_spent.h"

namespace verbena::jobs {

struct RunConfig {
  u32 window = 8;  // messages; 1 .. 64
  Duration step_overhead{};
  u8 priority = 3;  // of the data
  HostPathConfig host_path{};
};

// Returns `config` as runs on the cluster need it: `shortest_signal` is at most NVLink's latency if
// nodes have several GPUs.
[[nodiscard]] fabric::NetworkConfig network_for(const Cluster& cluster,
                                                fabric::NetworkConfig config);

struct ArrivedMessage {
  u32 from = 0, lane = 0, bytes = 0;
  Time posted;
  Duration alone{};  // its time in an idle network, without headers and host path
};

// StepObserver: is called for each finished step, and for each message in its receiver's memory;
// for several ranks by several threads at the same time.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void on_step(u32 rank, u32 lane, u64 index, Time now) = 0;
  virtual void on_message(u32 /*rank*/, const ArrivedMessage& /*message*/, Time /*now*/) {}
};

// LanePath: the path of the messages of one lane between two ranks: the ports that sent them.
struct LanePath {
  u32 from = 0, to = 0, lane = 0;
  std::vector<fabric::PathHop> hops{};
};

class CollectiveRun final : public fabric::Application {
 public:
  // This bit is not set in any alarm word of this class. It marks the alarms of another application
  // on the same network (SideBySide).
  static constexpr u32 kForeignWord = u32{1} << 31;
  static constexpr u32 kMadeAtStart = 1u << 16;  // connections: 1 GB, at 16 KB for both ends

  // Messages of the script are no longer than ConnectionConfig::kMaxMessageBytes. All arguments
  // outlive the run; `cluster` has as many ranks as the script, `network` is as network_for() has
  // it.
  CollectiveRun(const collectives::Script& script, const Cluster& cluster, const RunConfig& config,
                fabric::Network& network);

  void set_observer(StepObserver* observer) { observer_ = observer; }  // before start()
  // Every rank begins, now. Then the network runs. Precondition: no mistake.
  void start();
  // Returns the reason why the run is impossible, or "".
  [[nodiscard]] const std::string& mistake() const { return mistake_; }

  [[nodiscard]] u32 connections() const { return static_cast<u32>(pipe_of_connection_.size()); }

  // --- between the network's runs
  [[nodiscard]] bool finished() const;
  [[nodiscard]] u64 messages() const { return sum(&Rank::messages); }
  // The paths between nodes; none unless the network records them.
  [[nodiscard]] std::vector<LanePath> paths() const;
  [[nodiscard]] double part_done() const;  // of all steps. 0 .. 1
  // Precondition of all below: finished().
  [[nodiscard]] Duration time() const { return last_rank().finished_at - started_at_; }
  [[nodiscard]] const TimeSpent& spent() const { return last_rank().spent; }
  [[nodiscard]] u64 network_bytes() const { return sum(&Rank::network_bytes); }  // of messages
  [[nodiscard]] u64 nvlink_bytes() const { return sum(&Rank::nvlink_bytes); }
  [[nodiscard]] Duration cpu_time() const;  // of all hosts, in sum
  // The latencies of messages between nodes: from when the sender had one ready to when the
  // receiver had it all.
  [[nodiscard]] Latencies latencies() const;

  void on_arrival(u32 connection, u32 word, Time now) override;
  void on_sent(u32 connection, Time now) override;
  void on_alarm(u32 word, Time now) override;

 private:
  static constexpr u32 kNone = ~u32{0};
  enum class Waits : u8 { kNot, kMessage, kRoom, kLane, kOverhead, kComputing };
  struct Lane {
    Waits waits = Waits::kNot;
    u32 waits_for = kNone;  // a pipe, or a lane of the rank
    TimeSpent spent{};      // until now, along the way that led here
  };
  struct alignas(64) Rank {
    collectives::RankExecutor executor;
    u64 unsent_bytes = 0;     // posted at its NIC and not acknowledged
    Rate nic{};               // all ports of it
    u32 connections = 0;      // from it to others
    std::vector<u32> open{};  // pipes with a connection, the one used last at the end; if not all
    u64 network_bytes = 0, nvlink_bytes = 0, messages = 0;
    Duration cpu_time{};    // of its host's path
    Latencies latencies{};  // of messages that it received
    Time finished_at{};
    TimeSpent spent{};  // by the lane that finished last
  };
  struct Message {
    Time posted;
    Duration ahead{};   // the bytes posted at its NIC before it, and its own
    TimeSpent spent{};  // by its sender, until it was posted; then by who took it, until then
    Duration host{};    // in the host paths of both
    u32 bytes = 0;
  };
  // From one rank to another on one lane. Numbers are of messages.
  struct Pipe {
    u32 from = 0, to = 0, lane = 0;
    u32 connection = kNone;                   // none: by NVLink
    u32 posted = 0, sent = 0, confirmed = 0;  // the sender's; acknowledged; heard to be taken
    u32 begun = 0, arrived = 0, taken = 0;    // the receiver's; begun: at its NVLink port
    u32 handed = 0, landed = 0;               // to the sender's NIC; at the receiver's
    u32 is_open = 0;                          // the sender's: 1: in its list of open ones
    std::unique_ptr<Message[]>
        messages{};                 // by their number modulo the window; none under way: none
    Duration distance{}, notice{};  // of a packet; of the receiver's notice to the sender
  };
  // The executor's port of a rank (collectives/rank_executor.h).
  struct RankPort {
    CollectiveRun& run;
    u32 rank;
    Time now;
    [[nodiscard]] bool do_step(u32 lane, const collectives::Step& step);
    void on_step(u32 lane, u64 index);
    void on_lane_wait(u32 lane, u32 other);
    void on_lane_wake(u32 lane, u32 by);
    void on_finish(u32 lane);
  };
  // About: the subject of an alarm, in the lowest bits of its word: a pipe, or a lane. kForeignWord
  // is not set.
  enum class About : u8 { kBegins, kArrives, kWasTaken, kGoesOn, kSending };
  static constexpr u32 kAboutBits = 3;
  static constexpr u32 word_of(About about, u32 number) {
    return number << kAboutBits | static_cast<u32>(about);
  }

  [[nodiscard]] u32 place_of(u32 rank, u32 lane) const { return rank * lanes_ + lane; }
  [[nodiscard]] Message& slot(const Pipe& pipe, u32 number) const {
    return pipe.messages[number % config_.window];
  }
  void add_pipes();
  void connect(Pipe& pipe);
  [[nodiscard]] u16 source_port_of(const Pipe& pipe);
  void use(u32 number);
  void use_next(u32 place);
  void close_one(Rank& rank);
  void measure(Pipe& pipe) const;
  [[nodiscard]] u32 pipe_of(u32 from, u32 to, u32 lane) const;
  void work(u32 rank, Time now);
  bool send(u32 place, const collectives::Step& step, Time now);
  bool take(u32 place, const collectives::Step& step, Time now);
  void post(u32 number, u32 bytes, const TimeSpent& spent, Time now);
  void confirm(u32 number, const TimeSpent& spent, Time now);
  void on_begin(u32 number, Time now);
  void begin_sending(u32 number);
  void on_landed(u32 number, Time now);
  void on_message(u32 number, Time now);
  [[nodiscard]] ArrivedMessage arrived_message(const Pipe& pipe, const Message& message) const;
  void on_taken(u32 number, Time now);
  static void leave_if_idle(Pipe& pipe);
  bool do_step(u32 place, const collectives::Step& step, Time now);
  bool compute(u32 place, const collectives::Step& step, Time now);
  void wait_until(u32 place, Waits what, Time end);
  void on_time_over(u32 place, Time now);
  [[nodiscard]] TimeSpent spent_with(const Pipe& pipe, const Message& message, Time now) const;
  void wait(u32 place, Waits what, u32 on);
  void wake(u32 place, const TimeSpent& spent);
  void go_on_with(u32 place, const TimeSpent& spent);
  [[nodiscard]] const Rank& last_rank() const;
  [[nodiscard]] u64 sum(u64 Rank::*counter) const;

  const collectives::Script& script_;
  const Cluster& cluster_;
  const RunConfig config_;
  fabric::Network& network_;
  NVLinkPorts nvlink_;
  StepObserver* observer_ = nullptr;
  const HostPathModel* const path_;  // nullptr if there is none
  HostPathSums sending_path_, receiving_path_;
  std::vector<HostSide> sending_sides_, receiving_sides_;  // of each rank
  const u32 lanes_;                                        // of a rank
  std::vector<Lane> lane_;
  std::vector<Rank> ranks_;
  std::vector<Pipe> pipes_;      // by their senders' places, then by receivers
  std::vector<u32> first_pipe_;  // of each place, and the end
  std::vector<u32> pipe_of_connection_;
  bool all_are_open_ = true;
  std::string mistake_;
  Time started_at_;
};

}  // namespace verbena::jobs
