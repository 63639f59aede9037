#include "perf/data.h"

#include <cmath>
#include <cstring>

#include "coll/reduce/reduce.h"

namespace verbena::perf {
namespace {

using coll::DataType;
using coll::ReduceOp;

// Returns a small value. Values of products are 1 or 2, so that the products stay small.
u32 small_value(ReduceOp op, u32 rank, u64 place) {
  const u64 mixed = place * 7 + u64{rank} * 3;
  return static_cast<u32>(op == ReduceOp::kProduct ? 1 + mixed % 5 / 4 : mixed % 4);
}

// A period of elements, in their type.
std::vector<u8> period(DataType type, ReduceOp op, u32 rank) {
  constexpr u16 kHalf[] = {0x0000, 0x3c00, 0x4000, 0x4200};
  constexpr u16 kBFloat[] = {0x0000, 0x3f80, 0x4000, 0x4040};
  const u32 size = size_of(type);
  std::vector<u8> bytes(kPeriod * size);
  for (u64 i = 0; i < kPeriod; ++i) {
    const u32 value = small_value(op, rank, i);
    u8* const at = bytes.data() + i * size;
    const auto store = [&](auto element) { std::memcpy(at, &element, sizeof element); };
    switch (type) {
      case DataType::kInt8:
      case DataType::kUint8: store(static_cast<u8>(value)); break;
      case DataType::kInt32: store(static_cast<i32>(value)); break;
      case DataType::kInt64: store(static_cast<i64>(value)); break;
      case DataType::kFloat16: store(kHalf[value]); break;
      case DataType::kBFloat16: store(kBFloat[value]); break;
      case DataType::kFloat32: store(static_cast<float>(value)); break;
      case DataType::kFloat64: store(static_cast<double>(value)); break;
    }
  }
  return bytes;
}

// The scalar loops give what is expected: unit tests compare them with plain arithmetic.
std::vector<u8> reduced_period(DataType type, ReduceOp op, u32 ranks) {
  const coll::Kernels& kernels = coll::scalar::kKernels;
  std::vector<u8> sum = period(type, op, 0);
  for (u32 rank = 1; rank < ranks; ++rank) {
    const std::vector<u8> next = period(type, op, rank);
    kernels.combine[static_cast<u32>(type)].of[static_cast<u32>(op)](sum.data(), sum.data(),
                                                                     next.data(), kPeriod);
  }
  if (op == ReduceOp::kAverage) kernels.divide[static_cast<u32>(type)](sum.data(), kPeriod, ranks);
  return sum;
}

// Goes through the buffer in whole periods, which are compared at once.
u64 count_different(const u8* buffer, u64 count, u32 element, u64 first,
                    const std::vector<u8>& expected) {
  u64 wrong = 0;
  for (u64 i = 0; i < count;) {
    const u64 place = (first + i) % kPeriod;
    const u64 run = std::min(count - i, kPeriod - place);
    const u8* const is = buffer + i * element;
    const u8* const want = expected.data() + place * element;
    if (std::memcmp(is, want, run * element) != 0)
      for (u64 k = 0; k < run; ++k)
        wrong += std::memcmp(is + k * element, want + k * element, element) != 0 ? 1 : 0;
    i += run;
  }
  return wrong;
}

}  // namespace

void fill(void* buffer, u64 count, DataType type, ReduceOp op, u32 rank, u64 first) {
  const std::vector<u8> from = period(type, op, rank);
  const u32 element = size_of(type);
  u8* const to = static_cast<u8*>(buffer);
  for (u64 i = 0; i < count;) {
    const u64 place = (first + i) % kPeriod;
    const u64 run = std::min(count - i, kPeriod - place);
    std::memcpy(to + i * element, from.data() + place * element, run * element);
    i += run;
  }
}

u64 count_wrong(const void* buffer, u64 count, DataType type, ReduceOp op, u32 rank, u64 first) {
  return count_different(static_cast<const u8*>(buffer), count, size_of(type), first,
                         period(type, op, rank));
}

u64 count_wrong_reduced(const void* buffer, u64 count, DataType type, ReduceOp op, u32 ranks,
                        u64 first) {
  return count_different(static_cast<const u8*>(buffer), count, size_of(type), first,
                         reduced_period(type, op, ranks));
}

}  // namespace verbena::perf
