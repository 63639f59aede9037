// Program: what all ranks of a job do, from their tasks: computing, and collective operations of
// their communicators. It is a script as that of a single operation is, so that who does those
// does programs too.
//
// Lane 0 of each rank is its GPU's computing; where tasks are a CPU's, lane 1 is that.
// Every communicator has lanes of its own, as many as its widest operation; those of a rank that is
// in none of its groups are empty. What a task waits for are steps of no time before its own; of an
// operation there is at least one, with which it begins.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "collectives/schedule.h"
#include "jobs/program/communicator.h"
#include "jobs/program/task.h"

namespace verbena::jobs {

// A schedule that is done by each group of a communicator.
struct GroupOperation {
  u32 communicator = 0;
  collectives::Shape shape;  // of one group: refusal(shape) is ""
};

struct ProgramParts {
  u32 ranks = 0;
  std::vector<Communicator> communicators;
  std::vector<GroupOperation> operations;
  // The tasks of each role that ranks have.
  std::vector<std::vector<Task>> tasks;
  std::vector<u32> role_of;  // by rank
};

class Program final : public collectives::Script {
 public:
  // All members of a group have the same operations of its communicator in the same order, and what
  // tasks come after is such that no rank waits for itself.
  // kTasks: steps() and what is told of them are not asked for; it then costs no more than `parts`.
  enum class Asked : u8 { kTasks, kSteps };
  explicit Program(ProgramParts parts, Asked asked = Asked::kSteps);

  [[nodiscard]] u32 ranks() const override { return parts_.ranks; }
  [[nodiscard]] u32 lanes() const override { return lanes_; }
  [[nodiscard]] u64 steps(u32 rank, u32 lane) const override;
  [[nodiscard]] collectives::Step step(u32 rank, u32 lane, u64 index) const override;
  [[nodiscard]] std::vector<u32> receivers(u32 rank, u32 lane) const override;

  [[nodiscard]] const std::vector<Task>& tasks_of(u32 rank) const {
    return parts_.tasks[parts_.role_of[rank]];
  }
  [[nodiscard]] const Communicator& communicator(u32 number) const {
    return parts_.communicators[number];
  }
  [[nodiscard]] u32 role_of(u32 rank) const { return parts_.role_of[rank]; }
  [[nodiscard]] u32 operations() const { return static_cast<u32>(parts_.operations.size()); }
  [[nodiscard]] u32 number_of_communicator(u32 operation) const {
    return parts_.operations[operation].communicator;
  }
  [[nodiscard]] u32 communicators() const { return static_cast<u32>(parts_.communicators.size()); }
  // Returns the communicator of an operation.
  [[nodiscard]] const Communicator& communicator_of(u32 operation) const {
    return communicator(parts_.operations[operation].communicator);
  }
  [[nodiscard]] const collectives::Shape& shape_of(u32 operation) const {
    return schedules_[operation]->shape();
  }
  [[nodiscard]] Duration computing_of(u32 rank) const;  // of its GPU's tasks

  // Mark: the task that begins or ends with a finished step of this lane.
  struct Mark {
    enum class Kind : u8 { kBegins, kEnds, kBeginsAndEnds };
    u32 task = 0;  // of the rank's
    Kind kind = Kind::kEnds;
  };
  [[nodiscard]] std::optional<Mark> mark_at(u32 rank, u32 lane, u64 index) const;

 private:
  // Steps of one lane that belong together.
  struct Segment {
    u64 first = 0;  // step
    u32 task = 0;
    enum class Kind : u8 { kWaits, kComputes, kOperates } kind = Kind::kWaits;
    collectives::After after{};  // kWaits
    friend bool operator==(const Segment&, const Segment&) = default;
  };
  struct Lane {
    std::vector<Segment> segments;
    u64 steps = 0;
    friend bool operator==(const Lane&, const Lane&) = default;
  };
  using Layout = std::vector<Lane>;  // of a rank

  [[nodiscard]] const Lane& lane_of(u32 rank, u32 lane) const { return (*layouts_[rank])[lane]; }
  void lay_out_lanes();
  [[nodiscard]] Layout layout_of(u32 rank) const;
  void add_steps(u32 rank, u32 lane, u32 task, Lane& to) const;
  void add_waits(u32 rank, u32 lane, u32 task, const std::vector<std::vector<u64>>& ends,
                 Lane& to) const;
  [[nodiscard]] static const Segment& segment_at(const Lane& lane, u64 index);
  [[nodiscard]] u32 lanes_of(u32 communicator) const;
  [[nodiscard]] u32 first_lane_of(const Task& task) const {
    return task.computes() ? static_cast<u32>(task.unit) : first_lane_[task.communicator];
  }
  [[nodiscard]] collectives::Step step_of_operation(u32 rank, u32 lane, u32 task, u64 index) const;
  [[nodiscard]] static u64 first_step_of(const Lane& lane, u32 task);

  const ProgramParts parts_;
  std::vector<std::unique_ptr<collectives::Schedule>> schedules_;  // by operation
  std::vector<u32> first_lane_;  // of each communicator, and the end
  u32 lanes_ = 1;
  std::vector<std::shared_ptr<const Layout>> layouts_;  // by rank; many ranks have the same
};

}  // namespace verbena::jobs
