#include "jobs/flow_level/flow_program.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "collectives/make_schedule.h"
#include "jobs/flow_level/rank_classes.h"

namespace verbena::jobs {
namespace {

constexpr u32 kUnits = 2;  // that compute: GPU, CPU

// Doing: the state of one class while the program runs.
struct Doing {
  const std::vector<Task>* tasks = nullptr;
  std::vector<Span> spans;
  std::vector<bool> has_ended;           // by task
  std::vector<std::vector<u32>> lanes;   // tasks: of each unit, then of each communicator
  std::vector<std::size_t> done;         // of each lane
  std::vector<Time> free;                // of each lane: when its last task has ended
  std::vector<std::vector<Time>> begun;  // of each communicator: its operations, in their order
};

class FlowProgram {
 public:
  FlowProgram(const Program& program, std::vector<Duration> times)
      : program_(program), times_(std::move(times)), classes_(program) {
    for (u32 i = 0; i < classes_.size(); ++i) add_class(classes_.representative(i));
  }

  FlowProgramResult run() {
    bool moves = true;
    while (std::exchange(moves, false))
      for (u32 number = 0; number < doing_.size(); ++number)
        for (u32 lane = 0; lane < doing_[number].lanes.size(); ++lane)
          while (advance(number, lane)) moves = true;
    FlowProgramResult result;
    for (Doing& one : doing_) {
      if (std::ranges::count(one.has_ended, false) != 0)
        result.mistake = "operations wait for others that never come";
      for (const Span& span : one.spans) result.time = std::max(result.time, span.end - Time());
      result.spans.spans.push_back(std::move(one.spans));
    }
    result.spans.class_of = classes_.class_of();
    return result;
  }

 private:
  void add_class(u32 rank) {
    Doing one;
    one.tasks = &program_.tasks_of(rank);
    one.spans.resize(one.tasks->size());
    one.has_ended.resize(one.tasks->size());
    one.lanes.resize(program_.communicators() + kUnits);
    one.done.resize(one.lanes.size());
    one.free.resize(one.lanes.size());
    one.begun.resize(program_.communicators());
    for (u32 i = 0; i < one.tasks->size(); ++i) {
      const Task& task = (*one.tasks)[i];
      one.lanes[task.computes() ? static_cast<u32>(task.unit) : task.communicator + kUnits]
          .push_back(i);
    }
    doing_.push_back(std::move(one));
  }

  // Runs the next task of a lane. Returns false if the task waits, or there is none.
  bool advance(u32 number, u32 lane) {
    Doing& one = doing_[number];
    if (one.done[lane] == one.lanes[lane].size()) return false;
    const u32 place = one.lanes[lane][one.done[lane]];
    const Task& task = (*one.tasks)[place];
    Time begin = one.free[lane];
    for (const u32 before : task.after) {
      if (!one.has_ended[before]) return false;
      begin = std::max(begin, one.spans[before].end);
    }
    if (!task.computes() && one.begun[task.communicator].size() == one.done[lane])
      one.begun[task.communicator].push_back(begin);
    const std::optional<Time> end =
        task.computes() ? begin + task.lasts : end_of(number, task, one.done[lane]);
    if (!end) return false;
    one.spans[place] = {.begin = begin, .end = *end};
    one.has_ended[place] = true;
    one.free[lane] = *end;
    ++one.done[lane];
    return true;
  }

  // Returns nullopt if a member that the operation needs has not begun it.
  std::optional<Time> end_of(u32 number, const Task& task, std::size_t which) const {
    const u32 rank = classes_.representative(number);
    const Communicator& communicator = program_.communicator(task.communicator);
    const collectives::Shape& shape = program_.shape_of(task.operation);
    const u32 group = communicator.group_of(rank);
    Time last = doing_[number].begun[task.communicator][which];
    const bool has_root = shape.operation == collectives::Operation::kBroadcast;
    if (has_root && communicator.index_of(rank) == shape.root) return last + times_[task.operation];
    for (u32 i = has_root ? shape.root : 0; i < communicator.size(); ++i) {
      const u32 other = classes_.class_of()[communicator.member(group, i)];
      const std::vector<Time>& begun = doing_[other].begun[task.communicator];
      if (begun.size() <= which) return std::nullopt;
      last = std::max(last, begun[which]);
      if (has_root) break;
    }
    return last + times_[task.operation];
  }

  const Program& program_;
  const std::vector<Duration> times_;  // of operations
  const RankClasses classes_;
  std::vector<Doing> doing_;  // by class
};

}  // namespace

FlowProgramResult run_flow_program(const Program& program, const Cluster& cluster,
                                   const fabric::Topology& topology, const FlowLevelConfig& config,
                                   const Stop& stop) {
  std::vector<Duration> times;
  for (u32 i = 0; i < program.operations(); ++i) {
    const auto schedule = collectives::make_schedule(program.shape_of(i));
    const FlowLevelResult one =
        run_flow_level(*schedule, program.communicator_of(i), cluster, topology, config, stop);
    if (!one.mistake.empty()) return {.mistake = one.mistake, .time = {}, .spans = {}};
    times.push_back(ps(static_cast<i64>(one.seconds * 1e12)));
  }
  return FlowProgram(program, std::move(times)).run();
}

}  // namespace verbena::jobs
