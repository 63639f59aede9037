// The types of elements and the reductions. Values are those of verbena/collectives.h.
#pragma once

#include <string_view>

#include "base/types.h"

namespace verbena::coll {

enum class DataType : u8 {
  kInt8,
  kUint8,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
};
inline constexpr u32 kDataTypes = 8;

enum class ReduceOp : u8 {
  kSum,
  kProduct,
  kMin,
  kMax,
  kAverage,
  kBitAnd,
  kBitOr,
  kBitXor,
};
inline constexpr u32 kReduceOps = 8;

[[nodiscard]] constexpr u32 size_of(DataType type) {
  constexpr u32 kSizes[kDataTypes] = {1, 1, 4, 8, 2, 2, 4, 8};
  return kSizes[static_cast<u32>(type)];
}

[[nodiscard]] constexpr bool is_integer(DataType type) { return type <= DataType::kInt64; }
[[nodiscard]] constexpr bool is_bitwise(ReduceOp op) { return op >= ReduceOp::kBitAnd; }

// As nccl-tests prints them, for types that it has.
[[nodiscard]] constexpr std::string_view name_of(DataType type) {
  constexpr std::string_view kNames[kDataTypes] = {"int8", "uint8",    "int32", "int64",
                                                   "half", "bfloat16", "float", "double"};
  return kNames[static_cast<u32>(type)];
}

[[nodiscard]] constexpr std::string_view name_of(ReduceOp op) {
  constexpr std::string_view kNames[kReduceOps] = {"sum", "prod", "min", "max",
                                                   "avg", "band", "bor", "bxor"};
  return kNames[static_cast<u32>(op)];
}

}  // namespace verbena::coll
