#include "coll/reduce/reduce.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "coll/reduce/copy.h"

namespace verbena::coll {
namespace {

std::vector<const Kernels*> all_kernels() {
  std::size_t count = 0;
  const Kernels* const* const sets = kernels_here(count);
  return {sets, sets + count};
}

std::vector<u8> bytes(std::size_t count, u32 seed) {
  std::vector<u8> bytes(count);
  for (u8& byte : bytes) byte = static_cast<u8>((seed = seed * 1664525 + 1013904223) >> 24);
  return bytes;
}

// All NaNs of a floating-point type as one.
std::vector<u8> without_nans(std::vector<u8> values, DataType type) {
  const std::size_t size = size_of(type);
  const u64 infinity = type == DataType::kFloat16    ? 0x7c00
                       : type == DataType::kBFloat16 ? 0x7f80
                       : type == DataType::kFloat32  ? 0x7f800000
                                                     : 0x7ff0000000000000;
  const u64 magnitude = (u64{1} << (8 * size - 1)) - 1;
  for (std::size_t at = 0; at < values.size(); at += size) {
    u64 bits = 0;
    std::memcpy(&bits, values.data() + at, size);
    if ((bits & magnitude) > infinity) std::memset(values.data() + at, 0xff, size);
  }
  return values;
}

// A 16-bit float of any instruction set is the value of the scalar loop, NaNs aside.
TEST(Reduce, AllInstructionSetsGiveTheSameBits) {
  constexpr std::size_t kBytes = 8 * 1031;  // no whole number of vectors
  const std::vector<u8> a = bytes(kBytes, 1), b = bytes(kBytes, 2);
  for (u32 type = 0; type < kDataTypes; ++type) {
    const std::size_t count = kBytes / size_of(static_cast<DataType>(type));
    for (u32 op = 0; op < kReduceOps; ++op) {
      if (scalar::kKernels.combine[type].of[op] == nullptr) continue;
      std::vector<u8> expected(kBytes);
      scalar::kKernels.combine[type].of[op](expected.data(), a.data(), b.data(), count);
      for (const Kernels* const kernels : all_kernels()) {
        std::vector<u8> result = a;  // in place
        kernels->combine[type].of[op](result.data(), result.data(), b.data(), count);
        if (is_integer(static_cast<DataType>(type)))
          EXPECT_EQ(result, expected) << kernels->name << " " << type << " " << op;
        else
          EXPECT_EQ(without_nans(result, static_cast<DataType>(type)),
                    without_nans(expected, static_cast<DataType>(type)))
              << kernels->name << " " << type << " " << op;
      }
    }
  }
}

u16 sum_of(const Kernels& kernels, DataType type, u16 a, u16 b) {
  u16 sum = 0;
  kernels.combine[static_cast<u32>(type)].of[0](&sum, &a, &b, 1);
  return sum;
}
u16 sum_of_halves(const Kernels& kernels, u16 a, u16 b) {
  return sum_of(kernels, DataType::kFloat16, a, b);
}

TEST(Reduce, HalvesRoundToNearestEven) {
  for (const Kernels* const kernels : all_kernels()) {
    EXPECT_EQ(sum_of_halves(*kernels, 0x3c00, 0x3c00), 0x4000);  // 1 + 1 = 2
    EXPECT_EQ(sum_of_halves(*kernels, 0x6800, 0x3c00), 0x6800);  // 2048 + 1: a tie, to even
    EXPECT_EQ(sum_of_halves(*kernels, 0x6801, 0x3c00), 0x6802);  // 2050 + 1: a tie, up to even
    EXPECT_EQ(sum_of_halves(*kernels, 0x0001, 0x0001), 0x0002);  // subnormals
    EXPECT_EQ(sum_of_halves(*kernels, 0x7bff, 0x7bff), 0x7c00);  // too large: infinity
    EXPECT_EQ(sum_of_halves(*kernels, 0x7c00, 0xfc00) & 0x7fff, 0x7e00);  // inf - inf: NaN
    EXPECT_EQ(sum_of_halves(*kernels, 0x8000, 0x8000), 0x8000);           // -0
  }
}

TEST(Reduce, BFloat16RoundsToNearestEven) {
  const auto sum = [](const Kernels& kernels, u16 a, u16 b) {
    return sum_of(kernels, DataType::kBFloat16, a, b);
  };
  for (const Kernels* const kernels : all_kernels()) {
    EXPECT_EQ(sum(*kernels, 0x3f80, 0x3f80), 0x4000);           // 1 + 1 = 2
    EXPECT_EQ(sum(*kernels, 0x4380, 0x3f80), 0x4380);           // 256 + 1: a tie, to even
    EXPECT_EQ(sum(*kernels, 0x4381, 0x3f80), 0x4382);           // 258 + 1: a tie, up to even
    EXPECT_EQ(sum(*kernels, 0x4380, 0x4040), 0x4382);           // 256 + 3: up
    EXPECT_EQ(sum(*kernels, 0x7f7f, 0x7f7f), 0x7f80);           // too large: infinity
    EXPECT_GT(sum(*kernels, 0x7f80, 0xff80) & 0x7fff, 0x7f80);  // inf - inf: NaN
    EXPECT_EQ(sum(*kernels, 0x8000, 0x8000), 0x8000);           // -0
  }
}

// Every half, added to nothing, stays what it is.
TEST(Reduce, EveryHalfIsRead) {
  std::vector<u16> all, zeros(65536), sums(65536);
  for (u32 bits = 0; bits < 65536; ++bits) all.push_back(static_cast<u16>(bits));
  for (const Kernels* const kernels : all_kernels()) {
    kernels->combine[static_cast<u32>(DataType::kFloat16)].of[0](sums.data(), all.data(),
                                                                 zeros.data(), all.size());
    for (u32 bits = 0; bits < 65536; ++bits) {
      if ((bits & 0x7fff) > 0x7c00 || bits == 0x8000) continue;  // NaNs; -0 + 0 is 0
      ASSERT_EQ(sums[bits], bits) << kernels->name;
    }
  }
}

TEST(Reduce, NaNsAreNotLost) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Kernels* const kernels : all_kernels()) {
    for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kSum}) {
      for (const auto& [a, b] : {std::pair(nan, 1.0f), std::pair(1.0f, nan)}) {
        float result = 0;
        kernels->combine[static_cast<u32>(DataType::kFloat32)].of[static_cast<u32>(op)](&result, &a,
                                                                                        &b, 1);
        EXPECT_TRUE(std::isnan(result)) << name_of(op);
      }
    }
  }
}

TEST(Reduce, LongCopiesAreWhole) {
  std::vector<u8> from = bytes(kLongCopy + 300, 5), to(from.size() + 100, 7);
  for (const std::size_t at : {0u, 1u, 63u}) {
    for (const std::size_t less : {0u, 1u, 64u, 299u}) {
      std::fill(to.begin(), to.end(), u8{7});
      const std::size_t length = from.size() - less;
      copy_bytes(to.data() + at, from.data(), length);
      ASSERT_EQ(std::memcmp(to.data() + at, from.data(), length), 0);
      ASSERT_EQ(to[at + length], 7);
    }
  }
}

TEST(Reduce, AveragesOfIntegersRoundToZero) {
  std::vector<i32> values = {7, -7, 8, 0};
  divide(DataType::kInt32, values.data(), values.size() * 4, 2);
  EXPECT_EQ(values, (std::vector<i32>{3, -3, 4, 0}));
  EXPECT_FALSE(has_operation(DataType::kFloat32, ReduceOp::kBitAnd));
  EXPECT_TRUE(has_operation(DataType::kInt8, ReduceOp::kBitXor));
}

}  // namespace
}  // namespace verbena::coll
