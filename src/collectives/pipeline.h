// Pipeline: a short form of a schedule, for callers that compute with rates instead of messages.
// Data passes through stages in pieces; while one piece is in one stage, the next is in the stage
// before. In a stage every rank executes a window of its steps, and so again for each round: the
// messages that it sends then, and their receivers, are much the same.
#pragma once

#include <functional>
#include <vector>

#include "base/types.h"

namespace verbena::collectives {

struct StepWindow {
  u64 first = 0, count = 0;
};

// Pace: which ranks a rank waits for in a round.
enum class Pace : u8 {
  kSlowest,  // in the end every rank waits for the slowest one
  kRing,     // as many messages as ranks go around: a round takes what hops take on average
};

struct Stage {
  std::vector<u32> lanes;  // which do the same beside each other, one for each channel
  u64 rounds = 1;          // of one piece, one after another, by all ranks
  Pace pace = Pace::kSlowest;
  u64 levels = 1;  // of ranks that a piece goes through, each by then at the next piece
  std::function<StepWindow(u32 rank, u32 lane)> window;  // of the first round of the first piece
};

struct Pipeline {
  u64 pieces = 1;
  std::vector<Stage> stages;
};

}  // namespace verbena::collectives
