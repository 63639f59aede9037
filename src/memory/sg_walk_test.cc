#include "memory/sg_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "memory/keys_for_test.h"

namespace verbena {
namespace {

using test::kPD;

constexpr u64 kStartIova = 0x7000;

class SGWalkTest : public testing::Test {
 protected:
  SGWalkTest() { std::iota(memory_.begin(), memory_.end(), u8{0}); }

  SGE sge(u64 offset, u32 length) const { return {kStartIova + offset, length, keys_.l_key}; }
  std::vector<u8> gathered(const PayloadList& list) const {
    std::vector<u8> out;
    for (u32 i = 0; i < list.count; ++i)
      out.insert(out.end(), list.parts[i].begin(), list.parts[i].end());
    return out;
  }
  std::vector<u8> bytes(u64 offset, u64 length) const {
    const auto from = memory_.begin() + static_cast<std::ptrdiff_t>(offset);
    return {from, from + static_cast<std::ptrdiff_t>(length)};
  }

  std::vector<u8> memory_ = std::vector<u8>(200);
  ProtectionTable table_{16, PRNG(1)};
  MRKeys keys_ =
      table_.register_mr(kPD, memory_.data(), memory_.size(), kStartIova, Access::kLocalWrite)
          .value();
};

TEST_F(SGWalkTest, GatherCrossesElementsAndSkipsEmptyOnes) {
  const std::array list = {sge(10, 5), SGE{0, 0, LKey{77}}, sge(100, 5), sge(50, 5)};
  PayloadList out;
  ASSERT_EQ(gather(table_, kPD, list, 3, 9, out), MemoryFault::kNone);
  EXPECT_EQ(out.count, 3u);
  EXPECT_EQ(out.size_bytes, 9u);
  EXPECT_EQ(gathered(out), (std::vector<u8>{13, 14, 100, 101, 102, 103, 104, 50, 51}));
}

TEST_F(SGWalkTest, OnePieceIsWhatLiesInOneElement) {
  const std::array list = {sge(10, 5), sge(100, 50), SGE{kStartIova, 50, LKey{77}}};
  const std::optional<Bytes> piece = in_one_piece(table_, kPD, list, 8, 40);
  ASSERT_TRUE(piece.has_value());
  EXPECT_EQ(piece->data(), memory_.data() + 103);
  EXPECT_EQ(piece->size(), 40u);
  EXPECT_TRUE(in_one_piece(table_, kPD, list, 5, 50).has_value());  // all of it
  EXPECT_FALSE(in_one_piece(table_, kPD, list, 4, 5).has_value());  // two
  EXPECT_FALSE(in_one_piece(table_, kPD, list, 5, 51).has_value());
  EXPECT_FALSE(in_one_piece(table_, kPD, list, 60, 5).has_value());  // a key that is not there
  EXPECT_FALSE(in_one_piece(table_, kPD, list, 200, 1).has_value());
}

TEST_F(SGWalkTest, GatherOfNothingLooksAtNoKey) {
  const std::array list = {SGE{0, 5, LKey{77}}};
  PayloadList out;
  EXPECT_EQ(gather(table_, kPD, list, 0, 0, out), MemoryFault::kNone);
  EXPECT_EQ(gather(table_, kPD, {}, 0, 0, out), MemoryFault::kNone);
  EXPECT_EQ(out.count, 0u);
}

TEST_F(SGWalkTest, GatherTellsWhyItIsRefused) {
  PayloadList out;
  const std::array bad_key = {sge(0, 5), SGE{kStartIova, 5, LKey{77}}};
  EXPECT_EQ(gather(table_, kPD, bad_key, 0, 10, out), MemoryFault::kBadKey);
  const std::array outside = {sge(195, 6)};
  EXPECT_EQ(gather(table_, kPD, outside, 0, 6, out), MemoryFault::kBounds);
  const std::array inside = {sge(0, 5)};
  EXPECT_EQ(gather(table_, PDId{2}, inside, 0, 5, out), MemoryFault::kBadKey);
}

TEST_F(SGWalkTest, ElementThatWrapsAroundTheAddressSpaceIsRefused) {
  const MRKeys all = table_.register_whole_process(kPD, Access::kLocalWrite).value();
  const std::array list = {SGE{~u64{0} - 7, 16, all.l_key}};
  PayloadList out;
  EXPECT_EQ(gather(table_, kPD, list, 8, 8, out), MemoryFault::kBounds);
  EXPECT_EQ(gather(table_, kPD, list, 0, 4, out), MemoryFault::kBounds);
}

// A message may take 2^31 bytes of the null region, in many elements; a walk covers a packet of it.
TEST_F(SGWalkTest, ThePacketsOfALargeNullMessageAreZeros) {
  constexpr u32 kHalf = 1u << 30;
  constexpr u32 kPacket = 4096;  // the largest path MTU
  const LKey null = table_.register_null(kPD).value().l_key;
  const std::array list = {SGE{0, kHalf, null}, SGE{0x1234, kHalf, null}};
  const std::array<u64, 4> places = {0, u64{kHalf} - kPacket, u64{kHalf} - 100,
                                     2 * u64{kHalf} - kPacket};
  for (const u64 offset : places) {
    PayloadList out;
    ASSERT_EQ(gather(table_, kPD, list, offset, kPacket, out), MemoryFault::kNone) << offset;
    EXPECT_EQ(gathered(out), std::vector<u8>(kPacket)) << offset;
    EXPECT_EQ(scatter(table_, kPD, list, offset, std::vector<u8>(kPacket, 1)), MemoryFault::kNone);
  }
  EXPECT_FALSE(in_one_piece(table_, kPD, list, 0, 16 * kPacket).has_value());  // as none is there
}

TEST_F(SGWalkTest, ScatterFillsElementsInOrder) {
  const std::array list = {sge(10, 2), sge(100, 0), sge(20, 3)};
  const std::array<u8, 3> data = {0xa1, 0xa2, 0xa3};
  std::vector<u8> expected = memory_;
  expected[11] = 0xa1;
  expected[20] = 0xa2;
  expected[21] = 0xa3;
  ASSERT_EQ(scatter(table_, kPD, list, 1, data), MemoryFault::kNone);
  EXPECT_EQ(memory_, expected);
}

TEST_F(SGWalkTest, ScatterCopiesNothingWhenAnyPartIsRefused) {
  const MRKeys read_only =
      table_.register_mr(kPD, memory_.data(), memory_.size(), kStartIova, {}).value();
  const std::vector<u8> before = memory_;
  const std::vector<u8> data(10, 0xff);
  const std::array bad_key = {sge(0, 5), SGE{kStartIova, 5, LKey{77}}};
  EXPECT_EQ(scatter(table_, kPD, bad_key, 0, data), MemoryFault::kBadKey);
  const std::array no_right = {sge(0, 5), SGE{kStartIova, 5, read_only.l_key}};
  EXPECT_EQ(scatter(table_, kPD, no_right, 0, data), MemoryFault::kAccess);
  const std::array outside = {sge(0, 5), sge(196, 5)};
  EXPECT_EQ(scatter(table_, kPD, outside, 0, data), MemoryFault::kBounds);
  const std::array too_short = {sge(0, 5), sge(20, 4)};
  EXPECT_EQ(scatter(table_, kPD, too_short, 0, data), MemoryFault::kBounds);
  EXPECT_EQ(memory_, before);
}

TEST_F(SGWalkTest, ScatterTakesDataThatOverlapsItsTarget) {
  const std::vector<u8> expected = bytes(0, 50);
  const std::array list = {sge(10, 50)};
  ASSERT_EQ(scatter(table_, kPD, list, 0, Bytes(memory_).first(50)), MemoryFault::kNone);
  EXPECT_EQ(bytes(10, 50), expected);
}

class SGWalkModel : public SGWalkTest, public testing::WithParamInterface<u64> {
 protected:
  // Up to kMaxSGE disjoint elements that lie in memory in random order.
  std::vector<SGE> any_list() {
    std::vector<SGE> list;
    for (u64 at = 0; list.size() < kMaxSGE;) {
      at += prng_.below(10);
      const u64 length = prng_.below(12);
      if (at + length > memory_.size()) break;
      list.push_back(sge(at, static_cast<u32>(length)));
      at += length;
    }
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[prng_.below(i)]);
    return list;
  }
  // The place in memory of each byte of the list.
  static std::vector<u64> places(const std::vector<SGE>& list) {
    std::vector<u64> out;
    for (const SGE& e : list)
      for (u64 i = 0; i < e.length; ++i) out.push_back(e.address - kStartIova + i);
    return out;
  }

  PRNG prng_{GetParam()};
};

TEST_P(SGWalkModel, AgreesWithAByteByByteCopy) {
  for (u32 round = 0; round < 200; ++round) {
    const std::vector<SGE> list = any_list();
    const std::vector<u64> where = places(list);
    const u64 offset = prng_.below(where.size() + 1);
    const u64 length = prng_.below(where.size() - offset + 1);

    PayloadList out;
    ASSERT_EQ(gather(table_, kPD, list, offset, static_cast<u32>(length), out), MemoryFault::kNone);
    std::vector<u8> expected_bytes;
    for (u64 i = 0; i < length; ++i) expected_bytes.push_back(memory_[where[offset + i]]);
    ASSERT_EQ(gathered(out), expected_bytes);

    std::vector<u8> expected_memory = memory_;
    std::vector<u8> data(length + prng_.below(2) * (where.size() - offset + 1));
    for (u8& byte : data) byte = static_cast<u8>(prng_.next());
    const bool fits = offset + data.size() <= where.size();
    for (u64 i = 0; fits && i < data.size(); ++i) expected_memory[where[offset + i]] = data[i];
    ASSERT_EQ(scatter(table_, kPD, list, offset, data),
              fits ? MemoryFault::kNone : MemoryFault::kBounds);
    ASSERT_EQ(memory_, expected_memory);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SGWalkModel, testing::Range<u64>(0, 50));

}  // namespace
}  // namespace verbena
