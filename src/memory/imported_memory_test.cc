// Regions of another process's memory: in the tables, and in gathers and scatters.
#include "memory/imported_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "memory/keys_for_test.h"
#include "memory/sg_walk.h"

namespace verbena {
namespace {

using test::kOtherPD;
using test::kPD;
using test::kQP;

constexpr u64 kIOVA = 0x7f0000001000;
constexpr AccessFlags kAllRemote =
    Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead | Access::kMWBind;

// The other process.
struct OtherMemory final : ImportedMemory {
  std::vector<u8> bytes = std::vector<u8>(10000);
  bool there = true;

  bool read(u64 offset, MutableBytes to) override {
    if (there) std::memcpy(to.data(), bytes.data() + offset, to.size());
    return there;
  }
  bool write(u64 offset, Bytes from) override {
    if (there) std::memcpy(bytes.data() + offset, from.data(), from.size());
    return there;
  }
};

class ImportedMemoryTest : public testing::Test {
 protected:
  ImportedMemoryTest() { std::iota(other_->bytes.begin(), other_->bytes.end(), u8{1}); }

  std::vector<u8> gathered(std::span<const SGE> list, u32 length, MemoryFault expected = {}) {
    PayloadList out;
    EXPECT_EQ(gather(table_, kPD, list, 0, length, out), expected);
    EXPECT_EQ(out.unstable != 0, expected == MemoryFault::kNone);
    std::vector<u8> bytes;
    if (expected != MemoryFault::kNone) return bytes;
    for (u32 i = 0; i < out.count; ++i)
      bytes.insert(bytes.end(), out.parts[i].begin(), out.parts[i].end());
    return bytes;
  }
  Bytes read(const u8* from, u32 length) {
    MemoryFault why = MemoryFault::kNone;
    return *readable(table_, from, length, 0, nullptr, why);
  }
  std::vector<u8> part(u64 offset, u64 length) const {
    const auto from = other_->bytes.begin() + static_cast<std::ptrdiff_t>(offset);
    return {from, from + static_cast<std::ptrdiff_t>(length)};
  }

  std::shared_ptr<OtherMemory> other_ = std::make_shared<OtherMemory>();
  ProtectionTable table_{8, PRNG(1)};
  std::vector<u8> own_ = std::vector<u8>(1000, 0xee);
  MRKeys own_keys_ = *table_.register_mr(kPD, own_.data(), own_.size(), 0, Access::kLocalWrite);
  MRKeys keys_ =
      *table_.import_mr(kPD, other_, other_->bytes.size(), kIOVA, kAllRemote, LKey{0x12345678});
};

TEST_F(ImportedMemoryTest, ItsKeyIsTheOneItHasThere) {
  EXPECT_EQ(keys_.l_key, LKey{0x12345678});
  const MRKeys again = *table_.import_mr(kPD, other_, 1, 0, kAllRemote, LKey{0x12345699});
  EXPECT_NE(again.l_key.value >> 8, 0x123456u) << "where that index is taken, another";
  EXPECT_TRUE(table_.local(kPD, again.l_key, 0, 1, Access::kLocalRead));
}

TEST_F(ImportedMemoryTest, TheChecksOfAKeyHold) {
  const LKey key = keys_.l_key;
  EXPECT_TRUE(table_.local(kPD, key, kIOVA, 10000, Access::kLocalWrite));
  EXPECT_EQ(table_.local(kPD, key, kIOVA, 10001, Access::kLocalWrite).fault, MemoryFault::kBounds);
  EXPECT_EQ(table_.local(kPD, key, 0, 1, Access::kLocalWrite).fault, MemoryFault::kBounds);
  EXPECT_EQ(table_.local(kOtherPD, key, kIOVA, 1, Access::kLocalRead).fault, MemoryFault::kBadKey);
  const auto remote = [&](Access need) {
    return table_.remote(kPD, kQP, keys_.r_key, kIOVA, 8, need).fault;
  };
  EXPECT_EQ(remote(Access::kRemoteRead), MemoryFault::kNone);
  EXPECT_EQ(remote(Access::kRemoteAtomic), MemoryFault::kAccess);
  EXPECT_EQ(table_.import_mr(kPD, other_, u64{1} << 48, 0, kAllRemote, LKey{1}).error(),
            Status::kInvalidArgument);
}

TEST_F(ImportedMemoryTest, IsGatheredAmongOurOwn) {
  const std::array<SGE, 3> list = {SGE{kIOVA + 10, 5, keys_.l_key}, SGE{0, 2, own_keys_.l_key},
                                   SGE{kIOVA + 9000, 1000, keys_.l_key}};
  std::vector<u8> expected = part(10, 5);
  expected.insert(expected.end(), 2, 0xee);
  const std::vector<u8> rest = part(9000, 1000);
  expected.insert(expected.end(), rest.begin(), rest.end());
  EXPECT_EQ(gathered(list, 1007), expected);
  EXPECT_FALSE(in_one_piece(table_, kPD, list, 7, 1000).has_value());
}

TEST_F(ImportedMemoryTest, IsScatteredAmongOurOwn) {
  const std::array<SGE, 3> list = {SGE{kIOVA, 2, keys_.l_key}, SGE{3, 2, own_keys_.l_key},
                                   SGE{kIOVA + 9998, 2, keys_.l_key}};
  const std::array<u8, 6> data = {'a', 'b', 'c', 'd', 'e', 'f'};
  EXPECT_EQ(scatter(table_, kPD, list, 0, data), MemoryFault::kNone);
  EXPECT_EQ(part(0, 3), (std::vector<u8>{'a', 'b', 3}));
  EXPECT_EQ(part(9998, 2), (std::vector<u8>{'e', 'f'}));
  EXPECT_EQ((std::vector<u8>(own_.begin() + 2, own_.begin() + 6)),
            (std::vector<u8>{0xee, 'c', 'd', 0xee}));
}

TEST_F(ImportedMemoryTest, APeersBytesGoThereAndComeFromThere) {
  const std::array<u8, 4> data = {'a', 'b', 'c', 'd'};
  const Resolved to = table_.remote(kPD, kQP, keys_.r_key, kIOVA + 5000, 4, Access::kRemoteWrite);
  EXPECT_EQ(store_payload(table_, to.data, data, nullptr), MemoryFault::kNone);
  EXPECT_TRUE(std::ranges::equal(read(to.data, 4), data));
  EXPECT_EQ(part(5000, 4), std::vector<u8>(data.begin(), data.end()));
}

TEST_F(ImportedMemoryTest, AWindowOfItLeadsThere) {
  const RKey window = *table_.allocate_mw(kPD, MWType::k1);
  const RKey bound = *table_.bind_mw(kPD, kQP, window, window,
                                     {.mr_l_key = keys_.l_key,
                                      .address = kIOVA + 100,
                                      .length = 10,
                                      .access = Access::kRemoteRead});
  const Resolved at = table_.remote(kPD, kQP, bound, kIOVA + 104, 2, Access::kRemoteRead);
  EXPECT_TRUE(std::ranges::equal(read(at.data, 2), part(104, 2)));
  EXPECT_EQ(table_.deregister_mr(keys_.l_key), Status::kBusy);
}

TEST_F(ImportedMemoryTest, WhenItHasGoneAllFails) {
  other_->there = false;
  const SGE sge{kIOVA, 10, keys_.l_key};
  (void)gathered({&sge, 1}, 10, MemoryFault::kGone);
  const std::array<u8, 4> data{};
  EXPECT_EQ(scatter(table_, kPD, {&sge, 1}, 0, data), MemoryFault::kGone);
  const Resolved at = table_.remote(kPD, kQP, keys_.r_key, kIOVA, 4, Access::kRemoteWrite);
  EXPECT_EQ(store_payload(table_, at.data, data, nullptr), MemoryFault::kGone);
  MemoryFault why = MemoryFault::kNone;
  EXPECT_FALSE(readable(table_, at.data, 4, 0, nullptr, why));
  EXPECT_EQ(why, MemoryFault::kGone);
}

TEST_F(ImportedMemoryTest, NoShortCutLeadsThere) {
  std::array<MemoryPiece, 4> pieces;
  u32 count = 0;
  const SGE sge{kIOVA, 10, keys_.l_key};
  for (const Where where : {Where::kHere, Where::kLate})
    EXPECT_EQ(locate(table_, kPD, {&sge, 1}, 0, 10, Access::kLocalRead, where, pieces, count),
              MemoryFault::kGone);
}

TEST_F(ImportedMemoryTest, LeavesWithItsRegion) {
  const std::weak_ptr<OtherMemory> other = other_;
  other_.reset();
  EXPECT_FALSE(other.expired());
  EXPECT_EQ(table_.deregister_mr(keys_.l_key), Status::kOk);
  EXPECT_TRUE(other.expired());
  EXPECT_FALSE(table_.local(kPD, keys_.l_key, kIOVA, 1, Access::kLocalRead));
}

// An invented address of a program names no imported memory.
TEST_F(ImportedMemoryTest, NoRegionOfOurOwnReachesIt) {
  const Resolved at = table_.local(kPD, keys_.l_key, kIOVA, 1, Access::kLocalRead);
  EXPECT_FALSE(table_.register_mr(kPD, at.data, 8, 0, kAllRemote));
  EXPECT_FALSE(table_.register_mr(kPD, own_.data(), u64{1} << 63, 0, kAllRemote));
  const MRKeys whole = *table_.register_whole_process(kPD, kAllRemote);
  EXPECT_EQ(
      table_.local(kPD, whole.l_key, reinterpret_cast<u64>(at.data), 8, Access::kLocalRead).fault,
      MemoryFault::kBounds);
}

}  // namespace
}  // namespace verbena
