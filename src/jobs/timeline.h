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

class Timeline final : public StepObserver {
 public:
  explicit Timeline(const Program& program);  // which outlives it

  void on_step(u32 rank, u32 lane, u64 index, Time now) override;

  // Of a rank's tasks, in their order.
  [[nodiscard]] const std::vector<Span>& spans_of(u32 rank) const { return spans_[rank]; }

 private:
  const Program& program_;
  std::vector<std::vector<Span>> spans_;
};

// Of a rank: how long it computed, and was idle, for which purpose. The time before a task that
// computes, since the one before it, counts for the purpose of what ended last of all that it comes
// after; the time behind the last one for what of the rank's ended last.
struct Account {
  std::array<Duration, kPurposes> computing{}, idle{};

  [[nodiscard]] Duration all_computing() const;
};
[[nodiscard]] Account account_of(const Program& program, const Timeline& timeline, u32 rank,
                                 Time begin, Time end);

}  // namespace verbena::jobs
