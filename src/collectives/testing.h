// For tests: a script done on arrays. Ranks go on in an order that a seed chooses; a message is
// read from its sender's memory when it arrives, as late as a network may; at most `window`
// messages wait between two ranks of a lane.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "base/prng.h"
#include "collectives/schedule.h"

namespace verbena::collectives {

class ArrayRun {
 public:
  ArrayRun(const Schedule& schedule, u64 seed, std::size_t window)
      : ArrayRun(schedule, schedule.memory_bytes(), seed, window) {}
  ArrayRun(const Script& script, u64 memory_bytes, u64 seed, std::size_t window)
      : memory(script.ranks(), std::vector<u8>(memory_bytes)),
        bytes_sent(script.ranks()),
        script_(script),
        prng_(seed),
        window_(window),
        done_(script.ranks(), std::vector<u64>(script.lanes())) {}

  std::vector<std::vector<u8>> memory;  // of each rank
  std::vector<u64> bytes_sent;          // by each rank
  u64 messages_sent = 0;

  // Returns false if ranks wait for each other forever, or if a message has another length than its
  // receiver expects.
  [[nodiscard]] bool run() {
    std::vector<std::pair<u32, u32>> open;
    for (u32 rank = 0; rank < script_.ranks(); ++rank)
      for (u32 lane = 0; lane < script_.lanes(); ++lane) open.emplace_back(rank, lane);
    bool moves = true;
    while (moves && fits_) {
      moves = false;
      for (std::size_t i = open.size(); i > 1; --i) std::swap(open[i - 1], open[prng_.below(i)]);
      for (const auto& [rank, lane] : open) moves |= go_on(rank, lane);
    }
    for (const auto& [rank, lane] : open)
      if (done_[rank][lane] != script_.steps(rank, lane)) return false;
    for (const auto& [ends, messages] : under_way_)
      if (!messages.empty()) return false;
    return fits_;
  }

 private:
  struct Ends {
    u32 from, to, lane;
    friend auto operator<=>(const Ends&, const Ends&) = default;
  };

  // Runs a few steps of one lane. Returns false if the lane has to wait, or is done.
  bool go_on(u32 rank, u32 lane) {
    u64& done = done_[rank][lane];
    const u64 before = done, end = std::min(script_.steps(rank, lane), before + prng_.in(1, 4));
    for (; done != end; ++done) {
      const Step step = script_.step(rank, lane, done);
      if (step.after.steps != 0 && step.after.steps > done_[rank][step.after.lane]) break;
      if (!do_step(rank, lane, step)) break;
    }
    return done != before;
  }

  bool do_step(u32 rank, u32 lane, const Step& step) {
    switch (step.action) {
      case Action::kSend: return send(rank, lane, step);
      case Action::kCopy:
      case Action::kReduce: return receive(rank, lane, step);
      case Action::kCompute: return true;
    }
    return false;
  }

  bool send(u32 rank, u32 lane, const Step& step) {
    std::deque<Range>& messages = under_way_[{rank, step.peer, lane}];
    if (messages.size() >= window_) return false;
    messages.push_back(step.range);
    bytes_sent[rank] += step.range.length;
    ++messages_sent;
    return true;
  }

  bool receive(u32 rank, u32 lane, const Step& step) {
    std::deque<Range>& messages = under_way_[{step.peer, rank, lane}];
    if (messages.empty()) return false;
    const Range from = messages.front();
    messages.pop_front();
    if (from.length != step.range.length || from.end() > memory[rank].size() ||
        step.range.end() > memory[rank].size()) {
      fits_ = false;
      return false;
    }
    for (u64 i = 0; i < from.length; ++i) {
      u8& to = memory[rank][step.range.offset + i];
      const u8 value = memory[step.peer][from.offset + i];
      to = static_cast<u8>(step.action == Action::kReduce ? to + value : value);
    }
    return true;
  }

  const Script& script_;
  PRNG prng_;
  std::size_t window_;
  std::vector<std::vector<u64>> done_;  // steps, by rank and lane
  std::map<Ends, std::deque<Range>> under_way_;
  bool fits_ = true;
};

}  // namespace verbena::collectives
