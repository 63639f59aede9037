#include "collectives/make_schedule.h"

#include "base/check.h"
#include "collectives/direct.h"
#include "collectives/halving_doubling.h"
#include "collectives/hierarchical.h"
#include "collectives/rail_direct.h"
#include "collectives/ring.h"
#include "collectives/tree.h"

namespace verbena::collectives {
namespace {

bool does(Algorithm algorithm, Operation operation) {
  switch (algorithm) {
    case Algorithm::kRing:
    case Algorithm::kRailRing:
      return operation != Operation::kAllToAll && operation != Operation::kSendReceive;
    case Algorithm::kTree:
      return operation == Operation::kAllReduce || operation == Operation::kBroadcast;
    case Algorithm::kDoubleTree:
    case Algorithm::kHierarchical:
    case Algorithm::kHierarchicalTree: return operation == Operation::kAllReduce;
    case Algorithm::kHalvingDoubling:
      return operation == Operation::kAllReduce || operation == Operation::kAllGather ||
             operation == Operation::kReduceScatter;
    case Algorithm::kDirect:
      return operation == Operation::kAllToAll || operation == Operation::kSendReceive;
    case Algorithm::kRailDirect: return operation == Operation::kAllToAll;
  }
  CHECK_UNREACHABLE();
}

std::string text(std::string_view words) { return std::string(words); }

std::string algorithms_for(Operation operation) {
  std::string names;
  for (const Algorithm algorithm : kAlgorithms)
    if (does(algorithm, operation)) names += (names.empty() ? "" : ", ") + text(name_of(algorithm));
  return names;
}

bool has_one_channel(const Shape& shape) {
  return shape.algorithm == Algorithm::kRailDirect ||
         (shape.algorithm == Algorithm::kHalvingDoubling &&
          shape.operation != Operation::kAllReduce);
}

Shape fitted(Shape shape) {
  if (shape.operation == Operation::kAllToAll)
    shape.bytes -= shape.bytes % (u64{shape.ranks} * shape.element_bytes);
  if (has_one_channel(shape)) shape.channels = 1;
  return shape;
}

}  // namespace

std::string refusal(const Shape& shape) {
  if (!does(shape.algorithm, shape.operation))
    return "no " + text(name_of(shape.operation)) + " by " + text(name_of(shape.algorithm)) +
           ": there is " + algorithms_for(shape.operation);
  if (shape.ranks < 2 || shape.ranks > kMaxRanks) return "ranks: 2 to " + std::to_string(kMaxRanks);
  if (shape.ranks_per_node == 0 || shape.ranks % shape.ranks_per_node != 0)
    return std::to_string(shape.ranks) + " ranks are no whole number of nodes of " +
           std::to_string(shape.ranks_per_node);
  if (shape.channels == 0 || shape.channels > kMaxChannels)
    return "channels: 1 to " + std::to_string(kMaxChannels);
  if (shape.element_bytes == 0 || shape.bytes % shape.element_bytes != 0)
    return "a size of " + std::to_string(shape.bytes) +
           " bytes is no whole number of elements of " + std::to_string(shape.element_bytes);
  if (shape.bytes > kMaxBytes) return "size: at most 1 TiB";
  if (shape.root >= shape.ranks) return "root: a rank, 0 to " + std::to_string(shape.ranks - 1);
  return "";
}

std::unique_ptr<Schedule> make_schedule(const Shape& asked) {
  CHECK(refusal(asked).empty());
  const Shape shape = fitted(asked);
  switch (shape.algorithm) {
    case Algorithm::kRing:
    case Algorithm::kRailRing: return std::make_unique<Ring>(shape);
    case Algorithm::kTree:
    case Algorithm::kDoubleTree: return std::make_unique<Tree>(shape);
    case Algorithm::kHalvingDoubling: return std::make_unique<HalvingDoubling>(shape);
    case Algorithm::kHierarchical:
    case Algorithm::kHierarchicalTree: return std::make_unique<Hierarchical>(shape);
    case Algorithm::kDirect: return std::make_unique<Direct>(shape);
    case Algorithm::kRailDirect: return std::make_unique<RailDirect>(shape);
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena::collectives
