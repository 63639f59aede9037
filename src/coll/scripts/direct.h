// Direct scripts: every rank exchanges with every rank that it needs, without a rank between. On
// one host the receiver of a message reads the sender's memory itself, so these move each byte
// once.
//
//   n ranks, S bytes   rounds   what a rank receives
//   one-shot AllReduce  1        S (n - 1): all inputs, added in the order of the ranks
//   AllReduce           2        2 S (n - 1) / n: parts to reduce, then results of the others
//   Reduce              2        likewise; only the root receives in the second round
//   ReduceScatter       1        (n - 1) blocks      AllGather, AllToAll(v), Gather, Scatter
//   likewise Broadcast           1        S, from the root Barrier             log2 n dissemination
//   (Hensgen, Finkel and Manber, 1988)
// A message of a rank to itself is a local copy or reduction. All ranks get the same bits: a part
// is reduced by one rank, or by all in the same order.
#pragma once

#include <memory>
#include <optional>

#include "coll/call.h"
#include "coll/scripts/step_lists.h"

namespace verbena::coll {

struct DirectShape {
  u32 ranks = 2;
  std::optional<u32> only{};  // the rank whose lists are needed; all ranks if nullopt
  u64 chunk_bytes = 0;        // of data that is reduced before it is passed on; 0: not segmented
};

[[nodiscard]] std::unique_ptr<StepLists> one_shot_all_reduce(const Call& call,
                                                             const DirectShape& shape);
// Every kind but kShareIds. The counts of an AllToAllV are those of rank `only`.
[[nodiscard]] std::unique_ptr<StepLists> direct_script(const Call& call, const DirectShape& shape);
[[nodiscard]] std::unique_ptr<StepLists> barrier_script(const DirectShape& shape);

}  // namespace verbena::coll
