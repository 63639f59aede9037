// Script: the steps of each rank: plain data that is computed when asked for, without a network or
// memory. 1,024 ranks with a million steps each cost nothing. The code that moves the bytes
// (simulated hosts, live QPs, arrays in a test) asks for steps one by one.
//
// Invariants: steps() and step() depend on their arguments alone. Every message is received, by
// ranks that go on in any order, even where one message at a time waits between two ranks of a
// lane.
#pragma once

#include <vector>

#include "collectives/step.h"

namespace verbena::collectives {

class Script {
 public:
  Script() = default;
  virtual ~Script() = default;
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  [[nodiscard]] virtual u32 ranks() const = 0;
  [[nodiscard]] virtual u32 lanes() const = 0;  // of each rank
  [[nodiscard]] virtual u64 steps(u32 rank, u32 lane) const = 0;
  // index < steps(rank, lane)
  [[nodiscard]] virtual Step step(u32 rank, u32 lane, u64 index) const = 0;
  // The ranks that the lane of this one sends to, each once, in their order.
  [[nodiscard]] virtual std::vector<u32> receivers(u32 rank, u32 lane) const = 0;
};

}  // namespace verbena::collectives
