#include "collectives/operation.h"

#include <cctype>
#include <string>

#include "base/check.h"

namespace verbena::collectives {
namespace {

std::string plain(std::string_view name) {
  std::string letters;
  for (const char c : name)
    if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      letters.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  return letters;
}

}  // namespace

std::string_view name_of(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce: return "all reduce";
    case Operation::kAllGather: return "all gather";
    case Operation::kReduceScatter: return "reduce scatter";
    case Operation::kAllToAll: return "all to all";
    case Operation::kBroadcast: return "broadcast";
    case Operation::kSendReceive: return "send receive";
  }
  CHECK_UNREACHABLE();
}

std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kRing: return "ring";
    case Algorithm::kRailRing: return "rail ring";
    case Algorithm::kTree: return "tree";
    case Algorithm::kDoubleTree: return "double tree";
    case Algorithm::kHalvingDoubling: return "halving doubling";
    case Algorithm::kHierarchical: return "hierarchical";
    case Algorithm::kHierarchicalTree: return "hierarchical tree";
    case Algorithm::kDirect: return "direct";
    case Algorithm::kRailDirect: return "rail direct";
  }
  CHECK_UNREACHABLE();
}

std::optional<Operation> operation_named(std::string_view name) {
  for (const Operation operation : kOperations)
    if (plain(name_of(operation)) == plain(name)) return operation;
  return std::nullopt;
}

std::optional<Algorithm> algorithm_named(std::string_view name) {
  for (const Algorithm algorithm : kAlgorithms)
    if (plain(name_of(algorithm)) == plain(name)) return algorithm;
  return std::nullopt;
}

namespace {

bool is_message(const Shape& shape) {
  return shape.operation == Operation::kBroadcast && shape.ranks == 2;
}

}  // namespace

std::string_view operation_of(const Shape& shape) {
  return name_of(is_message(shape) ? Operation::kSendReceive : shape.operation);
}

std::string_view algorithm_of(const Shape& shape) {
  return name_of(is_message(shape) ? Algorithm::kDirect : shape.algorithm);
}

double bus_factor(Operation operation, u32 ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (operation) {
    case Operation::kAllReduce: return 2 * others;
    case Operation::kAllGather:
    case Operation::kReduceScatter:
    case Operation::kAllToAll: return others;
    case Operation::kBroadcast:
    case Operation::kSendReceive: return 1;
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena::collectives
