// Call: a collective operation that a program asks for, with its arguments; and the signature by
// which ranks find out that they called different things.
#pragma once

#include <string>
#include <vector>

#include "coll/data_type.h"
#include "collectives/operation.h"

namespace verbena::coll {

enum class Kind : u8 {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kReduce,
  kBroadcast,
  kGather,
  kScatter,
  kAllToAll,
  kAllToAllV,
  kBarrier,
  kShareIds,  // of a split
};

// A message of at most so many bytes travels with its header; longer ones are read by the
// receiver.
inline constexpr u32 kEagerBytes = 8144;

[[nodiscard]] std::string_view name_of(Kind kind);
// Returns true if one rank has another role than the others.
[[nodiscard]] constexpr bool has_root(Kind kind) {
  return kind == Kind::kReduce || kind == Kind::kBroadcast || kind == Kind::kGather ||
         kind == Kind::kScatter;
}
[[nodiscard]] constexpr bool reduces(Kind kind) {
  return kind == Kind::kAllReduce || kind == Kind::kReduceScatter || kind == Kind::kReduce;
}

// Blocks: the block sizes and offsets of an AllToAllV, in elements.
struct Blocks {
  std::vector<u64> counts{}, offsets{};
};

struct Call {
  Kind kind = Kind::kBarrier;
  DataType type = DataType::kUint8;
  ReduceOp op = ReduceOp::kSum;
  u32 root = 0;
  // Elements: of the whole buffer (AllReduce, Reduce, Broadcast), or of one rank's block.
  u64 count = 0;
  const void* send = nullptr;
  void* recv = nullptr;
  Blocks send_blocks{}, recv_blocks{};

  [[nodiscard]] u64 bytes() const { return count * size_of(type); }
};

}  // namespace verbena::coll
