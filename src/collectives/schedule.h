// Schedule: a collective operation as what each rank does, without a network, memory or time: plain
// data that is computed when asked for. 1,024 ranks with a million steps each cost nothing.
// What moves the octets (simulated hosts, live QPs, arrays in a test) asks for steps one by one.
//
// Invariants: steps() and step() depend on their arguments alone. Every message is received, by
// ranks that go on in any order, even where one message at a time waits between two ranks of a
// lane. A range that was handed to the network is not written before its message has arrived.
#pragma once

#include "collectives/operation.h"
#include "collectives/pipeline.h"
#include "collectives/step.h"

namespace verbena::collectives {

class Schedule {
 public:
  explicit Schedule(const Shape& shape) : shape_(shape) {}
  virtual ~Schedule() = default;
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] u32 ranks() const { return shape_.ranks; }
  [[nodiscard]] virtual u32 lanes() const = 0;  // of each rank
  [[nodiscard]] virtual u64 steps(u32 rank, u32 lane) const = 0;
  // index < steps(rank, lane)
  [[nodiscard]] virtual Step step(u32 rank, u32 lane, u64 index) const = 0;

  // Steps of a lane after which its peers come again, in the same order. steps() at most.
  [[nodiscard]] virtual u64 steps_until_repeated(u32 rank, u32 lane) const {
    return steps(rank, lane);
  }
  // The ranks that the lane of this one sends to, each once, in their order.
  [[nodiscard]] std::vector<u32> receivers(u32 rank, u32 lane) const;

  [[nodiscard]] virtual Pipeline pipeline() const = 0;

  // Where a rank's part in the operation lies in its memory.
  [[nodiscard]] virtual Range input(u32 rank) const = 0;
  [[nodiscard]] virtual Range output(u32 rank) const = 0;
  [[nodiscard]] virtual u64 memory_octets() const { return shape_.octets; }

 protected:
  // Lanes `first`, `first` + `apart`, ... one for each channel.
  [[nodiscard]] std::vector<u32> lanes_of_channels(u32 first, u32 apart) const {
    std::vector<u32> result;
    for (u32 lane = first; lane < lanes(); lane += apart) result.push_back(lane);
    return result;
  }

 private:
  const Shape shape_;
};

}  // namespace verbena::collectives
