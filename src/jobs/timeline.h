// Timeline: when each rank of a job did its tasks, and what it was idle for.
#pragma once

#include <array>
#include <vector>

#include "jobs/collective_run.h"
#include "jobs/program/program.h"

namespace verbena::jobs {

struct Span {
  Time begin = Time::never(), end;  // end before begin: it never began
};

// ClassSpans: the spans of classes of ranks that did the same at the same time.
struct ClassSpans {
  std::vector<std::vector<Span>> spans;  // by class, of its ranks' tasks
  std::vector<u32> class_of;             // by rank
};

class Timeline final : public StepObserver {
 public:
  explicit Timeline(const Program& program);  // which outlives it
  // Makes the timeline of a step that has ended.
  Timeline(const Program& program, ClassSpans spans);

  void on_step(u32 rank, u32 lane, u64 index, Time now) override;

  // Returns the spans of a rank's tasks, in their order.
  [[nodiscard]] const std::vector<Span>& spans_of(u32 rank) const {
    return spans_[classes_.empty() ? rank : classes_[rank]];
  }
  // Sample: a rank that stands for `stands_for` ranks.
  struct Sample {
    u32 rank, stands_for;
  };
  [[nodiscard]] const std::vector<Sample>& samples() const { return samples_; }

 private:
  const Program& program_;
  std::vector<std::vector<Span>> spans_;
  std::vector<u32> classes_;  // by rank; empty: each rank has its own spans
  std::vector<Sample> samples_;
};

// Account: how long a rank computed, and was idle, for each purpose. The idle time before a task
// that computes, since the previous one, counts for the purpose of the last of its predecessors to
// end. The idle time after the last computing task counts for the purpose of the rank's last task
// to end.
struct Account {
  std::array<Duration, kPurposes> computing{}, idle{};

  [[nodiscard]] Duration all_computing() const;
};
[[nodiscard]] Account account_of(const Program& program, const Timeline& timeline, u32 rank,
                                 Time begin, Time end);

}  // namespace verbena::jobs
