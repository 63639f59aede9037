// RunRecord: what is kept of a script being done packet by packet, for results.sqlite: the
// network's queues, links and pauses over time, how far each GPU was when, and messages.
#pragma once

#include <vector>

#include "fabric/results/network_record.h"
#include "jobs/collective_run.h"

namespace verbena::jobs {

// Some of the messages that each rank has received, evenly spread: when there are too many, every
// second one is forgotten, and one of twice as many is kept from then on. The slowest of a rank are
// kept in any case.
class MessageLog {
 public:
  static constexpr u32 kMostMessages = 200'000, kLeastOfRank = 32;
  static constexpr u32 kMostSlowest = 4096, kLeastSlowestOfRank = 2, kMostSlowestOfRank = 64;

  explicit MessageLog(u32 ranks);
  void add(u32 rank, const ArrivedMessage& message, Time now);

  struct Message {
    ArrivedMessage what;
    Duration took;
    [[nodiscard]] Duration lost() const { return took - what.alone; }
  };
  [[nodiscard]] const std::vector<Message>& of(u32 rank) const { return ranks_[rank].kept; }
  // Returns the messages with the longest time beyond their time alone, in no order.
  [[nodiscard]] const std::vector<Message>& slowest_of(u32 rank) const {
    return ranks_[rank].slowest;
  }
  // Returns how many messages of the rank each kept message stands for.
  [[nodiscard]] u32 each_stands_for(u32 rank) const { return ranks_[rank].every; }

 private:
  struct alignas(64) Rank {  // may be simulated by another thread than its neighbour
    std::vector<Message> kept{};
    std::vector<Message> slowest{};  // a heap, the fastest of them first
    u64 seen = 0;
    u32 every = 1;
  };
  void keep_if_slow(Rank& log, const Message& message) const;

  const std::size_t most_of_rank_, slowest_of_rank_;
  std::vector<Rank> ranks_;
};

// ProgressLog: when each lane of each rank had done each eighth of its steps.
class ProgressLog {
 public:
  static constexpr u32 kParts = 8;

  explicit ProgressLog(const collectives::Script& script);
  void add(u32 rank, u32 lane, u64 index, Time now);
  // Returns Time::never() if the lane has not reached the part, or has fewer steps. part: 1 ..
  // kParts
  [[nodiscard]] Time reached(u32 rank, u32 lane, u32 part) const {
    return reached_[place_of(rank, lane) + part - 1];
  }

 private:
  [[nodiscard]] std::size_t place_of(u32 rank, u32 lane) const {
    return (std::size_t{rank} * lanes_ + lane) * kParts;
  }
  const u32 lanes_;
  std::vector<u64> steps_;  // of each lane of each rank
  std::vector<Time> reached_;
};

class RunRecord final : public StepObserver {
 public:
  // `next`: who else wants to hear of steps; or nullptr.
  RunRecord(const collectives::Script& script, const fabric::Topology& topology,
            std::size_t most_points, StepObserver* next);

  void on_step(u32 rank, u32 lane, u64 index, Time now) override;
  void on_message(u32 rank, const ArrivedMessage& message, Time now) override {
    messages_.add(rank, message, now);
  }

  [[nodiscard]] fabric::NetworkRecord& network() { return network_; }
  void finish(const fabric::Network& network, Time now, std::vector<LanePath> paths);

  [[nodiscard]] const fabric::NetworkRecord& network() const { return network_; }
  [[nodiscard]] const std::vector<fabric::PortTotal>& totals() const { return totals_; }
  [[nodiscard]] const MessageLog& messages() const { return messages_; }
  [[nodiscard]] const std::vector<LanePath>& paths() const { return paths_; }
  [[nodiscard]] const ProgressLog& progress() const { return progress_; }
  [[nodiscard]] u32 ranks() const { return ranks_; }
  [[nodiscard]] u32 lanes() const { return lanes_; }

 private:
  const u32 ranks_, lanes_;
  StepObserver* const next_;
  fabric::NetworkRecord network_;
  std::vector<fabric::PortTotal> totals_;
  std::vector<LanePath> paths_;
  MessageLog messages_;
  ProgressLog progress_;
};

}  // namespace verbena::jobs
