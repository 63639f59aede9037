// RankExecutor: does the part of one rank in a script, on any transport of messages: hosts of a
// simulated network (jobs/collective_run.h) or queue pairs (coll/). It knows the order of steps;
// the transport (the `port` of each call) knows messages and time. A port has
//   bool do_step(u32 lane, const Step& step)   Does the next step of the lane. Returns true if the
//                                              step is done. If false, the lane waits until wake(),
//                                              and then the executor asks again; or the transport
//                                              calls end_step() itself, before or after wake().
//   void on_step(u32 lane, u64 index)          The step is done.
//   void on_lane_wait(u32 lane, u32 other)     The lane waits for another lane of the rank.
//   void on_lane_wake(u32 lane, u32 by)        Lane `by` has done the steps that the lane waits
//   for. void on_finish(u32 lane)                   All lanes are done; this one was the last.
// Contract: after wake(), call run(). A call of run() from inside a port's function returns at
// once, since the outer run() goes on until no lane is ready. One owner; not thread-safe. No
// allocation after start(), but for the list of ready lanes; and none in prepare() if a script
// before had as many lanes.
#pragma once

#include <utility>
#include <vector>

#include "collectives/script.h"

namespace verbena::collectives {

class RankExecutor {
 public:
  // Without a script: prepare() gives one.
  RankExecutor() = default;
  RankExecutor(const Script& script, u32 rank) { prepare(script, rank); }

  // Forgets the script before. `script` outlives its use.
  void prepare(const Script& script, u32 rank) {
    script_ = &script;
    rank_ = rank;
    lanes_.assign(script.lanes(), {});
    ready_.clear();
    next_ready_ = 0;
    unfinished_ = ~u32{0};
  }

  // All lanes are ready.
  void start() {
    unfinished_ = static_cast<u32>(lanes_.size());
    for (u32 lane = 0; lane < lanes_.size(); ++lane) {
      lanes_[lane].steps = script_->steps(rank_, lane);
      ready_.push_back(lane);
    }
  }

  // Runs lanes that are ready, one after another, so that a long chain of lanes needs no stack.
  template <typename Port>
  void run(Port& port) {
    if (next_ready_ != 0) return;  // called from below
    while (next_ready_ < ready_.size()) run_lane(ready_[next_ready_++], port);
    ready_.clear();
    next_ready_ = 0;
  }

  void wake(u32 lane) { ready_.push_back(lane); }

  // The step for which do_step() returned false is done.
  template <typename Port>
  void end_step(u32 lane, Port& port) {
    const u64 index = lanes_[lane].done++;
    port.on_step(lane, index);
    if (lanes_[lane].first_waiter != kNone) wake_waiters_of(lane, port);
  }

  [[nodiscard]] bool finished() const { return unfinished_ == 0; }
  [[nodiscard]] u64 steps_done() const { return sum(&Lane::done); }
  [[nodiscard]] u64 steps() const { return sum(&Lane::steps); }
  [[nodiscard]] u64 done(u32 lane) const { return lanes_[lane].done; }
  [[nodiscard]] u64 steps(u32 lane) const { return lanes_[lane].steps; }

 private:
  static constexpr u32 kNone = ~u32{0};
  struct Lane {
    u64 done = 0, steps = 0;
    u32 first_waiter = kNone, next = kNone;  // lanes that wait for this one
  };

  template <typename Port>
  void run_lane(u32 number, Port& port) {
    Lane& lane = lanes_[number];
    while (lane.done != lane.steps) {
      const Step step = script_->step(rank_, number, lane.done);
      if (step.after.steps > lanes_[step.after.lane].done) {
        port.on_lane_wait(number, step.after.lane);
        return wait_for(number, step.after.lane);
      }
      if (!port.do_step(number, step)) return;
      end_step(number, port);
    }
    if (--unfinished_ == 0) port.on_finish(number);
  }

  void wait_for(u32 lane, u32 other) {
    lanes_[lane].next = std::exchange(lanes_[other].first_waiter, lane);
  }

  // A waiter that needs more steps waits again.
  template <typename Port>
  void wake_waiters_of(u32 lane, Port& port) {
    u32 waiter = std::exchange(lanes_[lane].first_waiter, kNone);
    while (waiter != kNone) {
      const u32 next = lanes_[waiter].next;
      const Step step = script_->step(rank_, waiter, lanes_[waiter].done);
      if (step.after.steps > lanes_[lane].done) {
        wait_for(waiter, lane);
      } else {
        port.on_lane_wake(waiter, lane);
        wake(waiter);
      }
      waiter = next;
    }
  }

  [[nodiscard]] u64 sum(u64 Lane::*counter) const {
    u64 sum = 0;
    for (const Lane& lane : lanes_) sum += lane.*counter;
    return sum;
  }

  const Script* script_ = nullptr;
  u32 rank_ = 0;
  std::vector<Lane> lanes_{};
  std::vector<u32> ready_{};
  std::size_t next_ready_ = 0;
  u32 unfinished_ = ~u32{0};
};

}  // namespace verbena::collectives
