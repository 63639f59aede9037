// RankGraph: a trace's nodes in an order in which each comes after all that it needs; of those that
// could come next, the one of the lowest id.
#pragma once

#include <vector>

#include "jobs/chakra/trace.h"
#include "jobs/steps/gpu.h"

namespace verbena::jobs::chakra {

struct Item {
  static constexpr u32 kNone = ~u32{0};

  const Node* node = nullptr;
  std::vector<u32> after;  // items before this one
  Duration lasts{};        // of what computes; 0 takes no time, and is no task
  u32 exchange = kNone;    // that it has a part in (exchanges.h)
  u32 member = 0;          // and as which member

  [[nodiscard]] bool computes() const { return lasts != Duration(); }
};

struct RankGraph {
  const Trace* trace = nullptr;
  std::vector<Item> items;
};

// Computing takes what the trace says; else the roofline of its operations and bytes on that GPU
// (Williams et al., Roofline, CACM 2009). The trace outlives it.
[[nodiscard]] fabric::Parsed<RankGraph> graph_of(const Trace& trace, const GPU& gpu);

}  // namespace verbena::jobs::chakra
