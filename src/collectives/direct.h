// Direct: AllToAll as an exchange of pairs, and SendReceive as one message to the next rank.
//
//   n ranks, S bytes   rounds   bytes that a rank sends
//   AllToAll            n - 1    S (n - 1) / n: in round i to rank + i, from rank - i
//   SendReceive         1        S
// A rank's memory holds what it has, then what it gets. Its own block of an AllToAll is not moved:
// whoever prepares the memory puts it into the second half.
// A lane for each channel. Messages are not cut further.
#pragma once

#include "collectives/schedule.h"

namespace verbena::collectives {

class Direct final : public Schedule {
 public:
  using Schedule::Schedule;

  [[nodiscard]] u32 lanes() const override { return shape().channels; }
  [[nodiscard]] u64 steps(u32 rank, u32 lane) const override;
  [[nodiscard]] Step step(u32 rank, u32 lane, u64 index) const override;
  [[nodiscard]] Pipeline pipeline() const override;
  [[nodiscard]] Range input(u32) const override { return {0, shape().bytes}; }
  [[nodiscard]] Range output(u32) const override { return {shape().bytes, shape().bytes}; }
  [[nodiscard]] u64 memory_bytes() const override { return 2 * shape().bytes; }

 private:
  [[nodiscard]] bool is_all_to_all() const { return shape().operation == Operation::kAllToAll; }
  [[nodiscard]] Range message(const Range& memory, u32 block, u32 channel) const;
};

}  // namespace verbena::collectives
