// Schedule: the script of one collective operation. Besides Script's invariants: a range that was
// handed to the network is not written before its message has arrived.
#pragma once

#include "collectives/operation.h"
#include "collectives/pipeline.h"
#include "collectives/script.h"

namespace verbena::collectives {

class Schedule : public Script {
 public:
  explicit Schedule(const Shape& shape) : shape_(shape) {}

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] u32 ranks() const final { return shape_.ranks; }

  // Steps of a lane after which its peers come again, in the same order. steps() at most.
  [[nodiscard]] virtual u64 steps_until_repeated(u32 rank, u32 lane) const {
    return steps(rank, lane);
  }
  [[nodiscard]] std::vector<u32> receivers(u32 rank, u32 lane) const final;

  [[nodiscard]] virtual Pipeline pipeline() const = 0;

  // Where a rank's part in the operation lies in its memory.
  [[nodiscard]] virtual Range input(u32 rank) const = 0;
  [[nodiscard]] virtual Range output(u32 rank) const = 0;
  [[nodiscard]] virtual u64 memory_bytes() const { return shape_.bytes; }

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
