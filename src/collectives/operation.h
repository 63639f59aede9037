// The collective operations, the algorithms for them, and what nccl-tests calls their bandwidth.
// Sizes are those of nccl-tests: `bytes` is the whole of what a rank ends with (AllGather) or
// begins with (the others).
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "base/types.h"

namespace verbena::collectives {

enum class Operation : u8 {
  kAllReduce,      // every rank ends with the sum of all buffers
  kAllGather,      // every rank ends with all ranks' parts, in the order of the ranks
  kReduceScatter,  // rank i ends with part i of the sum
  kAllToAll,       // rank i ends with block i of every rank
  kBroadcast,      // every rank ends with the root's buffer
  kSendReceive,    // rank i sends its buffer to rank i + 1
};

enum class Algorithm : u8 {
  kRing,
  kRailRing,          // rings that change nodes only between GPUs of the same number
  kTree,              // a binary tree
  kDoubleTree,        // two of them, so that leaves of one are inner nodes of the other
  kHalvingDoubling,   // recursive halving, recursive doubling
  kHierarchical,      // inside nodes, then a ring of each rail, then inside nodes
  kHierarchicalTree,  // the same with a tree of each rail
  kDirect,            // every rank to every rank
  kRailDirect,        // first to the GPU of the receiver's number in the own node
};

inline constexpr std::array kOperations = {Operation::kAllReduce,     Operation::kAllGather,
                                           Operation::kReduceScatter, Operation::kAllToAll,
                                           Operation::kBroadcast,     Operation::kSendReceive};
inline constexpr std::array kAlgorithms = {Algorithm::kRing,
                                           Algorithm::kRailRing,
                                           Algorithm::kTree,
                                           Algorithm::kDoubleTree,
                                           Algorithm::kHalvingDoubling,
                                           Algorithm::kHierarchical,
                                           Algorithm::kHierarchicalTree,
                                           Algorithm::kDirect,
                                           Algorithm::kRailDirect};

// "all reduce", "rail ring" and so on: the words of scenarios and reports.
[[nodiscard]] std::string_view name_of(Operation operation);
[[nodiscard]] std::string_view name_of(Algorithm algorithm);
// Case, spaces, '-' and '_' make no difference. Returns nullopt if there is no such name.
[[nodiscard]] std::optional<Operation> operation_named(std::string_view name);
[[nodiscard]] std::optional<Algorithm> algorithm_named(std::string_view name);

// Shape: the parameters of an operation, and how it is segmented.
struct Shape {
  Operation operation = Operation::kAllReduce;
  Algorithm algorithm = Algorithm::kRing;
  u32 ranks = 2;
  u32 ranks_per_node = 1;  // rank r is GPU r % ranks_per_node of node r / ranks_per_node
  u64 bytes = 0;           // a multiple of element_bytes
  u32 element_bytes = 4;   // size of an element of a reduction, which no segment splits
  u32 channels = 1;        // each takes an equal part of all data, beside the others
  u64 chunk_bytes = 0;     // of one message, at most; 0: not segmented
  u32 root = 0;            // kBroadcast

  [[nodiscard]] u32 nodes() const { return ranks / ranks_per_node; }
  [[nodiscard]] u32 node_of(u32 rank) const { return rank / ranks_per_node; }
  [[nodiscard]] u32 local_of(u32 rank) const { return rank % ranks_per_node; }
};

// Return the names of the operation and of the algorithm as programs call them. A broadcast of two
// ranks is a message from one to the other, which NCCL calls send and receive.
[[nodiscard]] std::string_view operation_of(const Shape& shape);
[[nodiscard]] std::string_view algorithm_of(const Shape& shape);

// Returns the bytes that the slowest link must carry for each byte of the operation's size:
//   busbw = algbw * factor, algbw = bytes / time. NVIDIA, nccl-tests, doc/PERFORMANCE.md.
[[nodiscard]] double bus_factor(Operation operation, u32 ranks);

}  // namespace verbena::collectives
