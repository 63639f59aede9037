#include "jobs/steps/parts_builder.h"

#include <algorithm>

#include "base/check.h"

namespace verbena::jobs {
namespace {

using collectives::Algorithm;
using collectives::Shape;

constexpr u64 kLongestMessage = u64{1} << 29;  // half of what a connection takes

// Returns the algorithm that sends least between nodes.
Algorithm algorithm_for(collectives::Operation operation, const Communicator& communicator) {
  const bool has_rails =
      communicator.members_per_node() > 1 && communicator.members_per_node() < communicator.size();
  switch (operation) {
    case collectives::Operation::kAllReduce:
      return has_rails ? Algorithm::kHierarchical : Algorithm::kRing;
    case collectives::Operation::kAllGather:
    case collectives::Operation::kReduceScatter:
    case collectives::Operation::kBroadcast:
      return has_rails ? Algorithm::kRailRing : Algorithm::kRing;
    case collectives::Operation::kAllToAll:
      return has_rails ? Algorithm::kRailDirect : Algorithm::kDirect;
    case collectives::Operation::kSendReceive: return Algorithm::kDirect;
  }
  CHECK_UNREACHABLE();
}

}  // namespace

PartsBuilder::PartsBuilder(u32 ranks, u32 ranks_per_node, const Cutting& cutting)
    : ranks_per_node_(ranks_per_node), cutting_(cutting) {
  parts_.ranks = ranks;
}

u32 PartsBuilder::add_communicator(std::string name, std::vector<std::vector<u32>> groups) {
  if (groups.empty() || groups.front().size() < 2) return kNone;
  parts_.communicators.emplace_back(std::move(name), std::move(groups), parts_.ranks,
                                    ranks_per_node_);
  return static_cast<u32>(parts_.communicators.size() - 1);
}

Shape PartsBuilder::shape_of(const Communicator& communicator, collectives::Operation operation,
                             u64 bytes, u32 root) const {
  Shape shape{.operation = operation,
              .algorithm = algorithm_for(operation, communicator),
              .ranks = communicator.size(),
              .ranks_per_node = communicator.members_per_node(),
              .bytes = (bytes + 3) / 4 * 4,
              .root = root};
  const bool stays_inside = shape.ranks == shape.ranks_per_node;
  const bool is_pair = shape.ranks == 2 && operation == collectives::Operation::kBroadcast;
  shape.channels = stays_inside || is_pair ? 1 : cutting_.channels;
  shape.chunk_bytes = stays_inside || is_pair ? kLongestMessage : cutting_.chunk_bytes;
  return shape;
}

u32 PartsBuilder::operation(u32 communicator, collectives::Operation operation, u64 bytes,
                            u32 root) {
  const Shape shape = shape_of(parts_.communicators[communicator], operation, bytes, root);
  const auto same = std::find_if(
      parts_.operations.begin(), parts_.operations.end(), [&](const GroupOperation& known) {
        return known.communicator == communicator && known.shape.operation == operation &&
               known.shape.bytes == shape.bytes && known.shape.root == root;
      });
  if (same == parts_.operations.end()) {
    parts_.operations.push_back({communicator, shape});
    return static_cast<u32>(parts_.operations.size() - 1);
  }
  return static_cast<u32>(same - parts_.operations.begin());
}

u32 PartsBuilder::add(Task task) {
  parts_.tasks.back().push_back(std::move(task));
  return static_cast<u32>(parts_.tasks.back().size() - 1);
}

u32 PartsBuilder::compute(std::string name, Purpose purpose, Duration lasts,
                          std::vector<u32> after) {
  return add(
      {.name = std::move(name), .purpose = purpose, .lasts = lasts, .after = std::move(after)});
}

u32 PartsBuilder::operate(std::string name, Purpose purpose, u32 operation,
                          std::vector<u32> after) {
  return add({.name = std::move(name),
              .purpose = purpose,
              .communicator = parts_.operations[operation].communicator,
              .operation = operation,
              .after = std::move(after)});
}

ProgramParts PartsBuilder::take(std::vector<u32> role_of) {
  parts_.role_of = std::move(role_of);
  return std::move(parts_);
}

}  // namespace verbena::jobs
