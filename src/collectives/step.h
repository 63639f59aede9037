// Step: one thing that one rank does. A rank's steps stand in lanes; a lane does them in order, and
// lanes go on beside each other.
//   kSend     hands a range of the rank's memory to the network; the lane goes on at once
//   kCopy     waits for the next message of `peer` on this lane, and stores it
//   kReduce   likewise, and adds it to what is there
//   kCompute  takes its time; none where the lane only waits for another
// The k-th send of rank a to rank b on lane l is what the k-th copy or reduce of rank b from rank a
// on lane l receives; both have the same length, which may be 0.
#pragma once

#include "base/time.h"
#include "collectives/range.h"

namespace verbena::collectives {

enum class Action : u8 { kSend, kCopy, kReduce, kCompute };

// Before its step: that lane of the same rank has done so many steps. 0: nothing to wait for.
struct After {
  u32 lane = 0;
  u64 steps = 0;
  friend constexpr bool operator==(const After&, const After&) = default;
};

struct Step {
  Action action = Action::kSend;
  u32 peer = 0;  // a rank; of messages
  Range range;   // of the rank that does the step
  After after{};
  Duration lasts{};  // kCompute
  friend constexpr bool operator==(const Step&, const Step&) = default;
};

}  // namespace verbena::collectives
