// Rehearsal: in which order each rank begins its items, found by doing them as if messages and
// operations took no time: a rank's GPU computes one item after another, of those that could be
// next the one of the lowest id, and so does its CPU; exchanges of a party follow each other. A
// program has its tasks in this order, so that none waits for what it holds up itself.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "jobs/chakra/exchanges.h"

namespace verbena::jobs::chakra {

struct Rehearsal {
  std::string mistake;                   // what never comes; "": nothing
  std::vector<std::vector<u32>> orders;  // of each rank: its items
};

[[nodiscard]] Rehearsal rehearse(std::span<const RankGraph> ranks, const Exchanges& exchanges);

}  // namespace verbena::jobs::chakra
