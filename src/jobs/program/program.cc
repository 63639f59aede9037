#include "jobs/program/program.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "collectives/make_schedule.h"

namespace verbena::jobs {

using collectives::Action;
using collectives::After;
using collectives::Step;

Program::Program(ProgramParts parts, Asked asked) : parts_(std::move(parts)) {
  for (const GroupOperation& operation : parts_.operations) {
    CHECK(operation.shape.ranks == parts_.communicators[operation.communicator].size());
    schedules_.push_back(collectives::make_schedule(operation.shape));
  }
  if (asked == Asked::kTasks) return;
  lay_out_lanes();
  std::vector<std::vector<std::shared_ptr<const Layout>>> known(parts_.tasks.size());  // by role
  for (u32 rank = 0; rank < parts_.ranks; ++rank) {
    auto& of_role = known[parts_.role_of[rank]];
    Layout layout = layout_of(rank);
    const auto same = std::find_if(of_role.begin(), of_role.end(),
                                   [&](const auto& other) { return *other == layout; });
    layouts_.push_back(same != of_role.end() ? *same
                                             : std::make_shared<const Layout>(std::move(layout)));
    if (same == of_role.end()) of_role.push_back(layouts_.back());
  }
}

void Program::lay_out_lanes() {
  for (const std::vector<Task>& tasks : parts_.tasks)
    for (const Task& task : tasks)
      if (task.computes()) lanes_ = std::max(lanes_, static_cast<u32>(task.unit) + 1);
  for (u32 number = 0; number < parts_.communicators.size(); ++number) {
    first_lane_.push_back(lanes_);
    u32 widest = 0;
    for (u32 i = 0; i < parts_.operations.size(); ++i)
      if (parts_.operations[i].communicator == number)
        widest = std::max(widest, schedules_[i]->lanes());
    lanes_ += widest;
  }
  first_lane_.push_back(lanes_);
}

u32 Program::lanes_of(u32 communicator) const {
  return first_lane_[communicator + 1] - first_lane_[communicator];
}

// Task after task: its steps on each of its lanes, and where they end there.
Program::Layout Program::layout_of(u32 rank) const {
  const std::vector<Task>& tasks = tasks_of(rank);
  Layout layout(lanes_);
  std::vector<std::vector<u64>> ends(tasks.size());  // by lane, from the task's first
  for (u32 number = 0; number < tasks.size(); ++number) {
    const u32 lanes = tasks[number].computes() ? 1 : lanes_of(tasks[number].communicator);
    for (u32 i = 0; i < lanes; ++i) {
      const u32 lane = first_lane_of(tasks[number]) + i;
      add_waits(rank, lane, number, ends, layout[lane]);
      add_steps(rank, lane, number, layout[lane]);
      ends[number].push_back(layout[lane].steps);
    }
  }
  return layout;
}

void Program::add_steps(u32 rank, u32 number, u32 task_number, Lane& to) const {
  const Task& task = tasks_of(rank)[task_number];
  if (task.computes()) {
    to.segments.push_back({to.steps++, task_number, Segment::Kind::kComputes, {}});
    return;
  }
  const collectives::Schedule& schedule = *schedules_[task.operation];
  const u32 lane = number - first_lane_of(task);
  if (lane >= schedule.lanes()) return;
  to.segments.push_back({to.steps, task_number, Segment::Kind::kOperates, {}});
  to.steps += schedule.steps(parts_.communicators[task.communicator].index_of(rank), lane);
}

// The order within a lane needs none.
void Program::add_waits(u32 rank, u32 number, u32 task_number,
                        const std::vector<std::vector<u64>>& ends, Lane& to) const {
  const std::vector<Task>& tasks = tasks_of(rank);
  const Task& task = tasks[task_number];
  const u64 steps_before = to.steps;
  const auto add = [&](const After& after) {
    to.segments.push_back({to.steps++, task_number, Segment::Kind::kWaits, after});
  };
  for (const u32 before : task.after) {
    CHECK(before < task_number);
    const u32 first = first_lane_of(tasks[before]);
    for (u32 i = 0; i < ends[before].size(); ++i)
      if (first + i != number) add({first + i, ends[before][i]});
  }
  if (to.steps == steps_before && !task.computes()) add({});
}

u64 Program::steps(u32 rank, u32 lane) const { return lane_of(rank, lane).steps; }

// Returns the receivers of all operations that the rank has in the lane's communicator.
std::vector<u32> Program::receivers(u32 rank, u32 lane) const {
  std::set<u32> found;
  std::set<u32> operations;
  for (const Segment& segment : lane_of(rank, lane).segments)
    if (segment.kind == Segment::Kind::kOperates)
      operations.insert(tasks_of(rank)[segment.task].operation);
  for (const u32 operation : operations) {
    const u32 number = parts_.operations[operation].communicator;
    const Communicator& communicator = parts_.communicators[number];
    for (const u32 member :
         schedules_[operation]->receivers(communicator.index_of(rank), lane - first_lane_[number]))
      found.insert(communicator.member(communicator.group_of(rank), member));
  }
  return {found.begin(), found.end()};
}

const Program::Segment& Program::segment_at(const Lane& lane, u64 index) {
  const auto next =
      std::upper_bound(lane.segments.begin(), lane.segments.end(), index,
                       [](u64 step, const Segment& segment) { return step < segment.first; });
  return *std::prev(next);
}

Step Program::step(u32 rank, u32 lane, u64 index) const {
  const Segment& segment = segment_at(lane_of(rank, lane), index);
  const Task& task = tasks_of(rank)[segment.task];
  switch (segment.kind) {
    case Segment::Kind::kWaits:
      return {.action = Action::kCompute, .range = {}, .after = segment.after};
    case Segment::Kind::kComputes:
      return {.action = Action::kCompute, .range = {}, .lasts = task.lasts};
    case Segment::Kind::kOperates:
      return step_of_operation(rank, lane, segment.task, index - segment.first);
  }
  CHECK_UNREACHABLE();
}

// A step of the group's schedule, with the job's ranks and lanes.
Step Program::step_of_operation(u32 rank, u32 lane, u32 number, u64 index) const {
  const Task& task = tasks_of(rank)[number];
  const Communicator& communicator = parts_.communicators[task.communicator];
  const u32 first_lane = first_lane_[task.communicator];
  Step step =
      schedules_[task.operation]->step(communicator.index_of(rank), lane - first_lane, index);
  step.peer = communicator.member(communicator.group_of(rank), step.peer);
  if (step.after.steps == 0) return step;
  step.after.lane += first_lane;
  step.after.steps += first_step_of(lane_of(rank, step.after.lane), number);
  return step;
}

// Precondition: the task is an operation that uses the lane.
u64 Program::first_step_of(const Lane& lane, u32 number) {
  const auto next =
      std::upper_bound(lane.segments.begin(), lane.segments.end(), number,
                       [](u32 task, const Segment& segment) { return task < segment.task; });
  const Segment& last = *std::prev(next);
  CHECK(last.task == number && last.kind == Segment::Kind::kOperates);
  return last.first;
}

std::optional<Program::Mark> Program::mark_at(u32 rank, u32 number, u64 index) const {
  const Lane& lane = lane_of(rank, number);
  const Segment& segment = segment_at(lane, index);
  const Segment* const last = &lane.segments.back();
  const u64 end = &segment == last ? lane.steps : (&segment + 1)->first;
  if (index + 1 != end) return std::nullopt;
  switch (segment.kind) {
    case Segment::Kind::kComputes: return Mark{segment.task, Mark::Kind::kBeginsAndEnds};
    case Segment::Kind::kOperates: return Mark{segment.task, Mark::Kind::kEnds};
    case Segment::Kind::kWaits:
      if (&segment != last && (&segment + 1)->kind == Segment::Kind::kOperates)
        return Mark{segment.task, Mark::Kind::kBegins};
      return std::nullopt;
  }
  CHECK_UNREACHABLE();
}

Duration Program::computing_of(u32 rank) const {
  Duration sum;
  for (const Task& task : tasks_of(rank))
    if (task.occupies_gpu()) sum = sum + task.lasts;
  return sum;
}

}  // namespace verbena::jobs
