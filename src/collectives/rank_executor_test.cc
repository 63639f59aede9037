#include "collectives/rank_executor.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>

#include "collectives/make_schedule.h"

namespace verbena::collectives {
namespace {

// A script of one rank, given as steps.
class Lanes final : public Script {
 public:
  explicit Lanes(std::vector<std::vector<Step>> lanes) : lanes_(std::move(lanes)) {}
  [[nodiscard]] u32 ranks() const override { return 2; }
  [[nodiscard]] u32 lanes() const override { return static_cast<u32>(lanes_.size()); }
  [[nodiscard]] u64 steps(u32, u32 lane) const override { return lanes_[lane].size(); }
  [[nodiscard]] Step step(u32, u32 lane, u64 index) const override { return lanes_[lane][index]; }
  [[nodiscard]] std::vector<u32> receivers(u32, u32) const override { return {1}; }

 private:
  std::vector<std::vector<Step>> lanes_;
};

// Writes down what the executor asks for. Sends block while `room` is 0; computing is deferred.
struct Recorder {
  u32 room = ~u32{0};
  std::string log{};

  bool do_step(u32 lane, const Step& step) {
    if (step.action == Action::kCompute) return false;
    if (room == 0) {
      log += "blocked" + std::to_string(lane) + " ";
      return false;
    }
    --room;
    return true;
  }
  void on_step(u32 lane, u64 index) {
    log += std::to_string(lane) + "." + std::to_string(index) + " ";
  }
  void on_lane_wait(u32 lane, u32 other) {
    log += std::to_string(lane) + "waits" + std::to_string(other) + " ";
  }
  void on_lane_wake(u32 lane, u32 by) {
    log += std::to_string(by) + "wakes" + std::to_string(lane) + " ";
  }
  void on_finish(u32 lane) { log += "end" + std::to_string(lane); }
};

constexpr Step kSendToOne{Action::kSend, 1, {0, 4}};

TEST(RankExecutor, LaneWaitsForStepsOfAnother) {
  Step after = kSendToOne;
  after.after = {.lane = 1, .steps = 2};
  const Lanes script({{after, kSendToOne}, {kSendToOne, kSendToOne}});
  RankExecutor executor(script, 0);
  Recorder port;
  executor.start();
  executor.run(port);
  EXPECT_EQ(port.log, "0waits1 1.0 1.1 1wakes0 0.0 0.1 end0");
  EXPECT_TRUE(executor.finished());
}

TEST(RankExecutor, ForgetsTheScriptBefore) {
  const Lanes blocked({{kSendToOne}, {kSendToOne, kSendToOne}}), next({{kSendToOne}});
  RankExecutor executor(blocked, 0);
  Recorder before{.room = 1}, port;
  executor.start();
  executor.run(before);
  executor.wake(1);
  executor.prepare(next, 0);
  executor.start();
  executor.run(port);
  EXPECT_EQ(port.log, "0.0 end0");
  EXPECT_EQ(executor.steps(), 1u);
}

TEST(RankExecutor, BlockedStepIsAskedForAgain) {
  const Lanes script({{kSendToOne, kSendToOne}});
  RankExecutor executor(script, 0);
  Recorder port{.room = 1};
  executor.start();
  executor.run(port);
  EXPECT_EQ(port.log, "0.0 blocked0 ");
  EXPECT_FALSE(executor.finished());
  port.room = 1;
  executor.wake(0);
  executor.run(port);
  EXPECT_EQ(port.log, "0.0 blocked0 0.1 end0");
}

TEST(RankExecutor, TransportEndsDeferredSteps) {
  const Lanes script({{Step{Action::kCompute, 0, {}}, kSendToOne}});
  RankExecutor executor(script, 0);
  Recorder port;
  executor.start();
  executor.run(port);
  EXPECT_EQ(executor.steps_done(), 0u);
  executor.end_step(0, port);
  executor.wake(0);
  executor.run(port);
  EXPECT_EQ(port.log, "0.0 0.1 end0");
  EXPECT_EQ(executor.steps_done(), executor.steps());
}

// Ranks that share pipes in memory: every rank of every algorithm ends, and all it was sent is
// taken.
struct Pipes {
  std::map<std::tuple<u32, u32, u32>, std::deque<u64>> under_way{};  // from, to, lane: lengths
};
struct RankOnPipes {
  Pipes& pipes;
  u32 rank;
  std::vector<u32> waiting{};

  bool do_step(u32 lane, const Step& step) {
    if (step.action == Action::kSend) {
      pipes.under_way[{rank, step.peer, lane}].push_back(step.range.length);
      return true;
    }
    std::deque<u64>& from = pipes.under_way[{step.peer, rank, lane}];
    if (from.empty()) {
      waiting.push_back(lane);
      return false;
    }
    EXPECT_EQ(from.front(), step.range.length);
    from.pop_front();
    return true;
  }
  void on_step(u32, u64) {}
  void on_lane_wait(u32, u32) {}
  void on_lane_wake(u32, u32) {}
  void on_finish(u32) {}
};

TEST(RankExecutor, RanksOfAScheduleNeedNothingButMessages) {
  for (const Algorithm algorithm : kAlgorithms) {
    for (const Operation operation : kOperations) {
      const Shape shape{.operation = operation,
                        .algorithm = algorithm,
                        .ranks = 8,
                        .ranks_per_node = 4,
                        .bytes = 4096,
                        .channels = 2,
                        .chunk_bytes = 64};
      if (!refusal(shape).empty()) continue;
      const auto schedule = make_schedule(shape);
      Pipes pipes;
      std::vector<RankExecutor> executors;
      std::vector<RankOnPipes> ports;
      for (u32 rank = 0; rank < shape.ranks; ++rank) {
        executors.emplace_back(*schedule, rank);
        ports.push_back({pipes, rank});
        executors.back().start();
      }
      for (u64 before = ~u64{0}, done = 0; done != before;) {
        before = done;
        done = 0;
        for (u32 rank = 0; rank < shape.ranks; ++rank) {
          for (const u32 lane : std::exchange(ports[rank].waiting, {})) executors[rank].wake(lane);
          executors[rank].run(ports[rank]);
          done += executors[rank].steps_done();
        }
      }
      for (const RankExecutor& executor : executors)
        EXPECT_TRUE(executor.finished()) << name_of(algorithm) << ", " << name_of(operation);
      for (const auto& [ends, messages] : pipes.under_way) EXPECT_TRUE(messages.empty());
    }
  }
}

}  // namespace
}  // namespace verbena::collectives
