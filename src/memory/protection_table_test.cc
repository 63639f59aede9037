#include "memory/protection_table.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "memory/keys_for_test.h"

namespace verbena {
namespace {

using test::kOtherPD;
using test::kPD;
using test::kQP;
using test::status_of;

constexpr QPN kOtherQP{18};
constexpr u64 kIova = 0x10000;
constexpr u64 kRegionLength = 4096;
constexpr AccessFlags kAll =
    Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead | Access::kRemoteAtomic;
constexpr AccessFlags kBindable = Access::kLocalWrite | Access::kMWBind;
constexpr AccessFlags kReadWrite = Access::kRemoteRead | Access::kRemoteWrite;

class ProtectionTableTest : public testing::Test {
 protected:
  MRKeys register_all(AccessFlags access = kAll, u64 iova = kIova) {
    const Result<MRKeys> keys =
        table_.register_mr(kPD, buffer_.data(), buffer_.size(), iova, access);
    EXPECT_TRUE(keys.has_value());
    return keys.value();
  }
  RKey allocate(MWType type) { return table_.allocate_mw(kPD, type).value(); }
  MemoryFault remote_fault(RKey key, u64 address, u64 length, Access need) const {
    return table_.remote(kPD, kQP, key, address, length, need).fault;
  }
  MemoryFault local_fault(LKey key, u64 address, u64 length, Access need) const {
    return table_.local(kPD, key, address, length, need).fault;
  }
  static RKey next_variant(RKey key) {
    return RKey{(key.value & ~0xffu) | ((key.value + 1) & 0xffu)};
  }
  static MWBind bind_to(MRKeys mr, u64 address, u64 length, AccessFlags access) {
    return {.mr_l_key = mr.l_key, .address = address, .length = length, .access = access};
  }

  std::vector<u8> buffer_ = std::vector<u8>(kRegionLength);
  ProtectionTable table_{64, PRNG(1)};
};

// --- regions

TEST_F(ProtectionTableTest, RegionTranslatesItsIova) {
  const MRKeys keys = register_all();
  EXPECT_EQ(keys.l_key.value, keys.r_key.value);
  const Resolved all = table_.local(kPD, keys.l_key, kIova, kRegionLength, Access::kLocalWrite);
  ASSERT_TRUE(all);
  EXPECT_EQ(all.data, buffer_.data());
  const Resolved last =
      table_.remote(kPD, kQP, keys.r_key, kIova + kRegionLength - 1, 1, Access::kRemoteRead);
  ASSERT_TRUE(last);
  EXPECT_EQ(last.data, buffer_.data() + kRegionLength - 1);
}

TEST_F(ProtectionTableTest, OneByteOutsideIsRefused) {
  const MRKeys keys = register_all();
  EXPECT_EQ(local_fault(keys.l_key, kIova - 1, 1, Access::kLocalRead), MemoryFault::kBounds);
  EXPECT_EQ(local_fault(keys.l_key, kIova - 1, 2, Access::kLocalRead), MemoryFault::kBounds);
  EXPECT_EQ(local_fault(keys.l_key, kIova + kRegionLength, 1, Access::kLocalRead),
            MemoryFault::kBounds);
  EXPECT_EQ(local_fault(keys.l_key, kIova, kRegionLength + 1, Access::kLocalRead),
            MemoryFault::kBounds);
  EXPECT_EQ(remote_fault(keys.r_key, kIova + 1, kRegionLength, Access::kRemoteRead),
            MemoryFault::kBounds);
}

TEST_F(ProtectionTableTest, AddressPlusLengthNeverWraps) {
  const MRKeys keys = register_all();
  for (const u64 length : {~u64{0}, ~u64{0} - kIova, ~u64{0} - kIova + 1, u64{1} << 63})
    for (const u64 address : {kIova, kIova + 1, u64{0}, ~u64{0}, ~u64{0} - kRegionLength})
      EXPECT_EQ(remote_fault(keys.r_key, address, length, Access::kRemoteRead),
                MemoryFault::kBounds)
          << address << " " << length;
}

TEST_F(ProtectionTableTest, RegionMayEndAtTheTopOfTheAddressSpaceButNotWrap) {
  const u64 top = ~u64{0} - kRegionLength + 1;
  const MRKeys keys = register_all(kAll, top);
  EXPECT_EQ(local_fault(keys.l_key, ~u64{0}, 1, Access::kLocalRead), MemoryFault::kNone);
  EXPECT_EQ(local_fault(keys.l_key, ~u64{0}, 2, Access::kLocalRead), MemoryFault::kBounds);
  EXPECT_EQ(local_fault(keys.l_key, 0, 1, Access::kLocalRead), MemoryFault::kBounds);
  EXPECT_EQ(table_.register_mr(kPD, buffer_.data(), kRegionLength, top + 1, kAll).error(),
            Status::kInvalidArgument);
}

TEST_F(ProtectionTableTest, ZeroBasedRegionStartsAtZero) {
  const MRKeys keys = register_all(kAll | Access::kZeroBased);
  EXPECT_EQ(table_.remote(kPD, kQP, keys.r_key, 0, kRegionLength, Access::kRemoteWrite).data,
            buffer_.data());
  EXPECT_EQ(remote_fault(keys.r_key, kIova, 1, Access::kRemoteWrite), MemoryFault::kBounds);
}

TEST_F(ProtectionTableTest, LengthZeroIsGrantedWithTheKeyUnchecked) {
  EXPECT_EQ(remote_fault(RKey{0}, 0, 0, Access::kRemoteWrite), MemoryFault::kNone);
  EXPECT_EQ(local_fault(LKey{0xffffffff}, ~u64{0}, 0, Access::kLocalWrite), MemoryFault::kNone);
}

TEST_F(ProtectionTableTest, RegionOfLengthZeroHoldsNoByte) {
  const Result<MRKeys> keys = table_.register_mr(kPD, buffer_.data(), 0, kIova, kAll);
  ASSERT_TRUE(keys.has_value());
  EXPECT_EQ(local_fault(keys->l_key, kIova, 1, Access::kLocalRead), MemoryFault::kBounds);
}

TEST_F(ProtectionTableTest, RemoteWritersNeedLocalWriteAtRegistration) {
  for (const Access access : {Access::kRemoteWrite, Access::kRemoteAtomic})
    EXPECT_EQ(table_.register_mr(kPD, buffer_.data(), kRegionLength, kIova, access).error(),
              Status::kInvalidArgument);
  EXPECT_EQ(table_.size(), 0u);
  EXPECT_FALSE(table_.pd_in_use(kPD));
}

TEST_F(ProtectionTableTest, EachRightIsCheckedByItself) {
  constexpr std::array kRights = {Access::kLocalWrite, Access::kRemoteWrite, Access::kRemoteRead,
                                  Access::kRemoteAtomic};
  for (const Access right : kRights) {
    const MRKeys keys = register_all(right | Access::kLocalWrite);
    for (const Access need : kRights) {
      const bool granted = need == right || need == Access::kLocalWrite;
      EXPECT_EQ(remote_fault(keys.r_key, kIova, 8, need),
                granted ? MemoryFault::kNone : MemoryFault::kAccess);
    }
    EXPECT_EQ(table_.deregister_mr(keys.l_key), Status::kOk);
  }
}

TEST_F(ProtectionTableTest, LocalReadIsAlwaysGrantedLocalWriteIsNot) {
  const MRKeys keys = register_all(AccessFlags{});
  EXPECT_EQ(local_fault(keys.l_key, kIova, 1, Access::kLocalRead), MemoryFault::kNone);
  EXPECT_EQ(local_fault(keys.l_key, kIova, 1, Access::kLocalWrite), MemoryFault::kAccess);
}

TEST_F(ProtectionTableTest, AnotherPDsKeyIsNoKey) {
  const MRKeys keys = register_all();
  EXPECT_EQ(table_.remote(kOtherPD, kQP, keys.r_key, kIova, 1, Access::kRemoteRead).fault,
            MemoryFault::kBadKey);
  EXPECT_EQ(table_.local(kOtherPD, keys.l_key, kIova, 1, Access::kLocalRead).fault,
            MemoryFault::kBadKey);
}

TEST_F(ProtectionTableTest, RegionKeyServesEveryQPOfThePD) {
  const MRKeys keys = register_all();
  EXPECT_TRUE(table_.remote(kPD, kQP, keys.r_key, kIova, 1, Access::kRemoteRead));
  EXPECT_TRUE(table_.remote(kPD, kOtherQP, keys.r_key, kIova, 1, Access::kRemoteRead));
}

TEST_F(ProtectionTableTest, EveryOtherVariantOfAKeyIsDead) {
  const MRKeys keys = register_all();
  for (u32 flip = 1; flip < 256; ++flip)
    EXPECT_EQ(remote_fault(RKey{keys.r_key.value ^ flip}, kIova, 1, Access::kRemoteRead),
              MemoryFault::kBadKey);
}

TEST_F(ProtectionTableTest, DeregisteredKeyIsDead) {
  const MRKeys keys = register_all();
  EXPECT_TRUE(table_.pd_in_use(kPD));
  EXPECT_EQ(table_.deregister_mr(keys.l_key), Status::kOk);
  EXPECT_EQ(remote_fault(keys.r_key, kIova, 1, Access::kRemoteRead), MemoryFault::kBadKey);
  EXPECT_EQ(table_.deregister_mr(keys.l_key), Status::kNotFound);
  EXPECT_FALSE(table_.pd_in_use(kPD));
}

TEST_F(ProtectionTableTest, FullTableRefusesUntilAnEntryGoes) {
  std::vector<MRKeys> keys;
  for (u32 i = 0; i < 64; ++i) keys.push_back(register_all());
  EXPECT_EQ(table_.register_mr(kPD, buffer_.data(), 1, 0, kAll).error(), Status::kNoMemory);
  EXPECT_EQ(table_.allocate_mw(kPD, MWType::k1).error(), Status::kNoMemory);
  EXPECT_EQ(table_.deregister_mr(keys[5].l_key), Status::kOk);
  EXPECT_TRUE(table_.allocate_mw(kPD, MWType::k1).has_value());
  EXPECT_EQ(table_.size(), 64u);
}

TEST_F(ProtectionTableTest, WholeProcessIsAddressedByPointers) {
  const Result<MRKeys> keys = table_.register_whole_process(kPD, kAll);
  ASSERT_TRUE(keys.has_value());
  const u64 address = reinterpret_cast<u64>(buffer_.data());
  EXPECT_EQ(table_.local(kPD, keys->l_key, address, kRegionLength, Access::kLocalWrite).data,
            buffer_.data());
  EXPECT_EQ(local_fault(keys->l_key, address, ~u64{0}, Access::kLocalRead), MemoryFault::kBounds);
}

// --- Reregister, IBTA 11.2.8.5

TEST_F(ProtectionTableTest, ReregisterChangesWhatIsGivenAndKeepsTheKey) {
  const MRKeys keys = register_all();
  const AccessFlags read_only = Access::kRemoteRead;
  const Result<MRKeys> changed = table_.reregister_mr(keys.l_key, {.access = &read_only});
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(changed->r_key, keys.r_key);
  EXPECT_EQ(remote_fault(changed->r_key, kIova, kRegionLength, Access::kRemoteRead),
            MemoryFault::kNone);
  EXPECT_EQ(remote_fault(changed->r_key, kIova, 1, Access::kRemoteWrite), MemoryFault::kAccess);
}

TEST_F(ProtectionTableTest, ReregisterMovesTranslationAndPD) {
  const MRKeys keys = register_all();
  const Result<MRKeys> changed = table_.reregister_mr(keys.l_key, {.pd = &kOtherPD,
                                                                   .translation = true,
                                                                   .base = buffer_.data() + 100,
                                                                   .length = 50,
                                                                   .iova = 7});
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(changed->r_key.value >> 8, keys.r_key.value >> 8);
  EXPECT_EQ(remote_fault(keys.r_key, kIova, 1, Access::kRemoteRead), MemoryFault::kBadKey);
  EXPECT_FALSE(table_.pd_in_use(kPD));
  EXPECT_TRUE(table_.pd_in_use(kOtherPD));
  EXPECT_EQ(table_.local(kOtherPD, changed->l_key, 7, 50, Access::kLocalWrite).data,
            buffer_.data() + 100);
}

TEST_F(ProtectionTableTest, FailedReregisterLeavesNoRegion) {
  const MRKeys keys = register_all();
  const AccessFlags bad = Access::kRemoteWrite;
  EXPECT_EQ(table_.reregister_mr(keys.l_key, {.access = &bad}).error(), Status::kInvalidArgument);
  EXPECT_EQ(table_.size(), 0u);
  EXPECT_FALSE(table_.pd_in_use(kPD));
  EXPECT_EQ(table_.reregister_mr(keys.l_key, {}).error(), Status::kNotFound);
}

TEST_F(ProtectionTableTest, RegionWithABoundWindowIsBusy) {
  const MRKeys keys = register_all(kBindable);
  const RKey window = allocate(MWType::k1);
  const RKey bound =
      table_.bind_mw(kPD, kQP, window, window, bind_to(keys, kIova, 64, kReadWrite)).value();
  EXPECT_EQ(table_.deregister_mr(keys.l_key), Status::kBusy);
  EXPECT_EQ(table_.reregister_mr(keys.l_key, {}).error(), Status::kBusy);
  EXPECT_EQ(remote_fault(bound, kIova, 64, Access::kRemoteRead), MemoryFault::kNone);
  EXPECT_EQ(table_.deallocate_mw(bound), Status::kOk);
  EXPECT_EQ(table_.deregister_mr(keys.l_key), Status::kOk);
  EXPECT_EQ(table_.size(), 0u);
}

// --- the limit of registered bytes

TEST_F(ProtectionTableTest, RegionsAndWindowsMayHaveLimitsOfTheirOwn) {
  ProtectionTable table(2, 1, PRNG(1));
  const auto region = [&] { return table.register_mr(kPD, buffer_.data(), 1, 0, kAll); };
  const MRKeys first = region().value();
  const MRKeys second = region().value();
  EXPECT_EQ(status_of(region()), Status::kNoMemory);
  const RKey window = table.allocate_mw(kPD, MWType::k1).value();
  EXPECT_EQ(table.allocate_mw(kPD, MWType::k2).error(), Status::kNoMemory);
  EXPECT_EQ(table.deregister_mr(second.l_key), Status::kOk);
  EXPECT_EQ(table.allocate_mw(kPD, MWType::k2).error(), Status::kNoMemory);
  EXPECT_EQ(table.deregister_mr(region().value().l_key), Status::kOk);
  EXPECT_EQ(table.deallocate_mw(window), Status::kOk);
  EXPECT_EQ(table.deregister_mr(first.l_key), Status::kOk);
}

class RegisteredBytesTest : public ProtectionTableTest {
 protected:
  void SetUp() override { table_.limit_registered_bytes(kRegionLength + 100); }
  Result<MRKeys> register_bytes(u64 length) {
    return table_.register_mr(kPD, buffer_.data(), length, kIova, kAll);
  }
};

TEST_F(RegisteredBytesTest, RegionsBeyondItAreRefused) {
  const MRKeys whole = register_all();
  EXPECT_EQ(status_of(register_bytes(101)), Status::kNoMemory);
  EXPECT_EQ(status_of(table_.register_whole_process(kPD, kAll)), Status::kNoMemory);
  EXPECT_TRUE(table_.register_null(kPD).has_value());
  EXPECT_TRUE(register_bytes(100).has_value());
  EXPECT_EQ(table_.registered_bytes(), kRegionLength + 100);
  EXPECT_EQ(status_of(register_bytes(1)), Status::kNoMemory);
  EXPECT_TRUE(register_bytes(0).has_value());
  ASSERT_EQ(table_.deregister_mr(whole.l_key), Status::kOk);
  EXPECT_TRUE(register_bytes(kRegionLength).has_value());
}

TEST_F(RegisteredBytesTest, ReregistrationCountsTheDifference) {
  const MRKeys whole = register_all();
  const MRKeys small = register_bytes(50).value();
  const auto resized = [&](LKey key, u64 length) {
    return table_.reregister_mr(
        key, {.translation = true, .base = buffer_.data(), .length = length, .iova = kIova});
  };
  EXPECT_EQ(status_of(resized(small.l_key, 101)), Status::kNoMemory);
  EXPECT_EQ(local_fault(small.l_key, kIova, 50, Access::kLocalRead), MemoryFault::kNone);
  EXPECT_TRUE(resized(small.l_key, 100).has_value());
  EXPECT_TRUE(resized(whole.l_key, 10).has_value());
  EXPECT_EQ(table_.registered_bytes(), 110u);
}

// Regions of the whole process are 2^63 bytes each.
TEST_F(ProtectionTableTest, WithoutALimitTheSumMayWrap) {
  std::vector<LKey> keys;
  for (u32 i = 0; i < 5; ++i)
    keys.push_back(table_.register_whole_process(kPD, kAll).value().l_key);
  for (const LKey key : keys) EXPECT_EQ(table_.deregister_mr(key), Status::kOk);
  EXPECT_EQ(table_.registered_bytes(), 0u);
}

// --- windows, IBTA 10.6.7

TEST_F(ProtectionTableTest, WindowGivesRemoteRightsThatItsRegionDoesNotGive) {
  const MRKeys keys = register_all(kBindable);
  EXPECT_EQ(remote_fault(keys.r_key, kIova, 1, Access::kRemoteRead), MemoryFault::kAccess);
  const RKey window = allocate(MWType::k1);
  const RKey bound =
      table_.bind_mw(kPD, kQP, window, window, bind_to(keys, kIova + 100, 50, Access::kRemoteRead))
          .value();
  EXPECT_EQ(table_.remote(kPD, kQP, bound, kIova + 100, 50, Access::kRemoteRead).data,
            buffer_.data() + 100);
  EXPECT_EQ(remote_fault(bound, kIova + 99, 1, Access::kRemoteRead), MemoryFault::kBounds);
  EXPECT_EQ(remote_fault(bound, kIova + 149, 2, Access::kRemoteRead), MemoryFault::kBounds);
  EXPECT_EQ(remote_fault(bound, kIova + 100, 1, Access::kRemoteWrite), MemoryFault::kAccess);
}

TEST_F(ProtectionTableTest, LocalWriteMeansNothingToAWindow) {
  const MRKeys keys = register_all(kBindable);
  const RKey window = allocate(MWType::k1);
  const AccessFlags rights = Access::kLocalWrite | Access::kRemoteRead;
  const RKey bound =
      table_.bind_mw(kPD, kQP, window, window, bind_to(keys, kIova, 50, rights)).value();
  EXPECT_EQ(remote_fault(bound, kIova, 50, Access::kRemoteRead), MemoryFault::kNone);
  EXPECT_EQ(remote_fault(bound, kIova, 50, Access::kRemoteWrite), MemoryFault::kAccess);
  EXPECT_EQ(local_fault(LKey{bound.value}, kIova, 1, Access::kLocalWrite), MemoryFault::kBadKey);
}

TEST_F(ProtectionTableTest, UnboundWindowIsNoKeyAndAWindowIsNeverAnLKey) {
  const MRKeys keys = register_all(kBindable);
  const RKey window = allocate(MWType::k2);
  EXPECT_EQ(remote_fault(window, 0, 1, Access::kRemoteRead), MemoryFault::kBadKey);
  const RKey bound =
      table_.bind_mw(kPD, kQP, window, window, bind_to(keys, kIova, 8, kReadWrite)).value();
  EXPECT_EQ(local_fault(LKey{bound.value}, kIova, 1, Access::kLocalRead), MemoryFault::kBadKey);
  EXPECT_EQ(table_.deregister_mr(LKey{bound.value}), Status::kNotFound);
  EXPECT_EQ(table_.deallocate_mw(keys.r_key), Status::kNotFound);
}

TEST_F(ProtectionTableTest, Type1RebindReplacesAndChangesTheVariant) {
  const MRKeys keys = register_all(kBindable);
  const RKey window = allocate(MWType::k1);
  const RKey first =
      table_.bind_mw(kPD, kQP, window, window, bind_to(keys, kIova, 8, kReadWrite)).value();
  EXPECT_NE(first, window);
  EXPECT_EQ(first.value >> 8, window.value >> 8);
  const RKey chosen = next_variant(first);
  const RKey second =
      table_.bind_mw(kPD, kOtherQP, first, chosen, bind_to(keys, kIova + 8, 8, kReadWrite)).value();
  EXPECT_EQ(second, chosen);
  EXPECT_EQ(remote_fault(first, kIova, 1, Access::kRemoteRead), MemoryFault::kBadKey);
  EXPECT_EQ(remote_fault(second, kIova, 1, Access::kRemoteRead), MemoryFault::kBounds);
  EXPECT_EQ(remote_fault(second, kIova + 8, 8, Access::kRemoteRead), MemoryFault::kNone);
}

TEST_F(ProtectionTableTest, Type1BindOfLengthZeroUnbinds) {
  const MRKeys keys = register_all(kBindable);
  const RKey window = allocate(MWType::k1);
  const RKey bound =
      table_.bind_mw(kPD, kQP, window, window, bind_to(keys, kIova, 8, kReadWrite)).value();
  const RKey unbound = table_.bind_mw(kPD, kQP, bound, bound, {}).value();
  EXPECT_EQ(remote_fault(bound, kIova, 1, Access::kRemoteRead), MemoryFault::kBadKey);
  EXPECT_EQ(remote_fault(unbound, kIova, 1, Access::kRemoteRead), MemoryFault::kBadKey);
  EXPECT_EQ(table_.deregister_mr(keys.l_key), Status::kOk);
}

TEST_F(ProtectionTableTest, Type1ServesEveryQPOfThePD) {
  const MRKeys keys = register_all(kBindable);
  const RKey window = allocate(MWType::k1);
  const RKey bound =
      table_.bind_mw(kPD, kQP, window, window, bind_to(keys, kIova, 8, kReadWrite)).value();
  EXPECT_TRUE(table_.remote(kPD, kOtherQP, bound, kIova, 8, Access::kRemoteWrite));
  EXPECT_EQ(table_.remote(kOtherPD, kQP, bound, kIova, 8, Access::kRemoteWrite).fault,
            MemoryFault::kBadKey);
}

TEST_F(ProtectionTableTest, Type2ServesOnlyTheQPThatBoundIt) {
  const MRKeys keys = register_all(kBindable);
  const RKey window = allocate(MWType::k2);
  const RKey bound =
      table_.bind_mw(kPD, kQP, window, next_variant(window), bind_to(keys, kIova, 8, kReadWrite))
          .value();
  EXPECT_EQ(bound, next_variant(window));
  EXPECT_TRUE(table_.remote(kPD, kQP, bound, kIova, 8, Access::kRemoteWrite));
  EXPECT_EQ(table_.remote(kPD, kOtherQP, bound, kIova, 8, Access::kRemoteWrite).fault,
            MemoryFault::kBadKey);
}

TEST_F(ProtectionTableTest, Type2MustBeInvalidatedBeforeItIsBoundAgain) {
  const MRKeys keys = register_all(kBindable);
  const RKey window = allocate(MWType::k2);
  const MWBind bind = bind_to(keys, kIova, 8, kReadWrite);
  const RKey bound = table_.bind_mw(kPD, kQP, window, window, bind).value();
  EXPECT_EQ(table_.bind_mw(kPD, kQP, bound, next_variant(bound), bind).error(),
            Status::kInvalidArgument);
  EXPECT_EQ(table_.invalidate(kPD, kQP, bound), MemoryFault::kNone);
  EXPECT_EQ(remote_fault(bound, kIova, 1, Access::kRemoteRead), MemoryFault::kBadKey);
  EXPECT_TRUE(table_.bind_mw(kPD, kQP, bound, next_variant(bound), bind).has_value());
}

TEST_F(ProtectionTableTest, Type2IsNotUnboundByABindOfLengthZero) {
  const MRKeys keys = register_all(kBindable);
  const RKey window = allocate(MWType::k2);
  EXPECT_EQ(table_.bind_mw(kPD, kQP, window, window, bind_to(keys, kIova, 0, kReadWrite)).error(),
            Status::kInvalidArgument);
}

TEST_F(ProtectionTableTest, InvalidateTakesOnlyABoundType2WindowOfTheQP) {
  const MRKeys keys = register_all(kBindable);
  const RKey type1 = allocate(MWType::k1);
  const RKey type2 = allocate(MWType::k2);
  const MWBind bind = bind_to(keys, kIova, 8, kReadWrite);
  const RKey bound1 = table_.bind_mw(kPD, kQP, type1, type1, bind).value();
  EXPECT_EQ(table_.invalidate(kPD, kQP, type2), MemoryFault::kBadKey);  // not bound
  const RKey bound2 = table_.bind_mw(kPD, kQP, type2, type2, bind).value();
  EXPECT_EQ(table_.invalidate(kPD, kQP, bound1), MemoryFault::kAccess);
  EXPECT_EQ(table_.invalidate(kPD, kQP, keys.r_key), MemoryFault::kAccess);
  EXPECT_EQ(table_.invalidate(kPD, kOtherQP, bound2), MemoryFault::kAccess);
  EXPECT_EQ(table_.invalidate(kOtherPD, kQP, bound2), MemoryFault::kBadKey);
  EXPECT_EQ(table_.invalidate(kPD, kQP, next_variant(bound2)), MemoryFault::kBadKey);
  EXPECT_EQ(table_.invalidate(kPD, kQP, bound2), MemoryFault::kNone);
  EXPECT_EQ(table_.invalidate(kPD, kQP, bound2), MemoryFault::kBadKey);
}

TEST_F(ProtectionTableTest, ZeroBasedWindowCountsFromItsFirstByte) {
  const MRKeys keys = register_all(kBindable);
  const AccessFlags access = kReadWrite | Access::kZeroBased;
  const RKey window = allocate(MWType::k2);
  const RKey bound =
      table_.bind_mw(kPD, kQP, window, window, bind_to(keys, kIova + 100, 50, access)).value();
  EXPECT_EQ(table_.remote(kPD, kQP, bound, 0, 50, Access::kRemoteWrite).data, buffer_.data() + 100);
  EXPECT_EQ(remote_fault(bound, 0, 51, Access::kRemoteWrite), MemoryFault::kBounds);
  EXPECT_EQ(remote_fault(bound, kIova + 100, 1, Access::kRemoteWrite), MemoryFault::kBounds);
}

TEST_F(ProtectionTableTest, Type1IsNeverZeroBased) {
  const MRKeys keys = register_all(kBindable);
  const RKey window = allocate(MWType::k1);
  const MWBind bind = bind_to(keys, kIova, 8, kReadWrite | Access::kZeroBased);
  EXPECT_EQ(table_.bind_mw(kPD, kQP, window, window, bind).error(), Status::kInvalidArgument);
}

TEST_F(ProtectionTableTest, BindIsRefusedAndChangesNothing) {
  const MRKeys keys = register_all(kBindable);
  const MRKeys no_bind = register_all(kAll);
  const MRKeys read_only = register_all(Access::kMWBind);
  const MRKeys foreign =
      table_.register_mr(kOtherPD, buffer_.data(), kRegionLength, kIova, kBindable).value();
  const RKey window = allocate(MWType::k2);
  const auto refused = [&](PDId pd, RKey mw, RKey new_key, const MWBind& bind) {
    return status_of(table_.bind_mw(pd, kQP, mw, new_key, bind)) == Status::kInvalidArgument;
  };
  const MWBind good = bind_to(keys, kIova, 8, kReadWrite);
  EXPECT_TRUE(refused(kOtherPD, window, window, good));                         // C10-72
  EXPECT_TRUE(refused(kPD, next_variant(window), next_variant(window), good));  // no such key
  EXPECT_TRUE(refused(kPD, keys.r_key, keys.r_key, good));                      // a region
  EXPECT_TRUE(refused(kPD, window, RKey{window.value ^ 0x100}, good));          // other index
  EXPECT_TRUE(refused(kPD, window, window, bind_to(foreign, kIova, 8, kReadWrite)));
  EXPECT_TRUE(refused(kPD, window, window, bind_to(no_bind, kIova, 8, kReadWrite)));    // C10-73
  EXPECT_TRUE(refused(kPD, window, window, bind_to(read_only, kIova, 8, kReadWrite)));  // C10-74
  EXPECT_TRUE(refused(kPD, window, window, bind_to(read_only, kIova, 8, Access::kRemoteAtomic)));
  EXPECT_TRUE(refused(kPD, window, window, bind_to(keys, kIova - 1, 8, kReadWrite)));  // C10-75
  EXPECT_TRUE(
      refused(kPD, window, window, bind_to(keys, kIova + kRegionLength - 7, 8, kReadWrite)));
  EXPECT_TRUE(refused(kPD, window, window, bind_to(keys, kIova, ~u64{0}, kReadWrite)));
  EXPECT_TRUE(refused(kPD, window, window, bind_to(keys, kIova, 8, Access::kMWBind)));
  EXPECT_TRUE(refused(kPD, window, window, bind_to({LKey{1}, RKey{1}}, kIova, 8, kReadWrite)));
  EXPECT_EQ(table_.deregister_mr(keys.l_key), Status::kOk);  // nothing is bound to it
  EXPECT_TRUE(
      table_.bind_mw(kPD, kQP, window, window, bind_to(read_only, kIova, 8, Access::kRemoteRead))
          .has_value());
}

TEST_F(ProtectionTableTest, DestroyedQPLeavesNoWindowToALaterQPOfItsNumber) {
  const MRKeys keys = register_all(kBindable);
  const RKey mine = allocate(MWType::k2);
  const RKey other = allocate(MWType::k2);
  const MWBind bind = bind_to(keys, kIova, 8, kReadWrite);
  ASSERT_TRUE(table_.bind_mw(kPD, kQP, mine, mine, bind).has_value());
  ASSERT_TRUE(table_.bind_mw(kPD, kOtherQP, other, other, bind).has_value());
  table_.invalidate_windows_of(kQP);
  EXPECT_EQ(table_.remote(kPD, kQP, mine, kIova, 1, Access::kRemoteRead).fault,
            MemoryFault::kBadKey);
  EXPECT_TRUE(table_.remote(kPD, kOtherQP, other, kIova, 1, Access::kRemoteRead));
  EXPECT_TRUE(table_.bind_mw(kPD, kQP, mine, mine, bind).has_value());
}

TEST_F(ProtectionTableTest, AWholeRegionIsNamedByItsKeyAlone) {
  const AccessFlags rights = Access::kLocalWrite | AccessFlags(Access::kFlushGlobal);
  const MRKeys keys =
      table_.register_mr(kPD, buffer_.data(), buffer_.size(), kIova, rights).value();
  const auto fault = [&](PDId pd, RKey key, Access need) {
    return table_.remote_whole(pd, kQP, key, need);
  };
  EXPECT_EQ(fault(kPD, keys.r_key, Access::kFlushGlobal), MemoryFault::kNone);
  EXPECT_EQ(fault(kPD, keys.r_key, Access::kFlushPersistent), MemoryFault::kAccess);
  EXPECT_EQ(fault(kPD, RKey{keys.r_key.value ^ 1}, Access::kFlushGlobal), MemoryFault::kBadKey);
  EXPECT_EQ(fault(PDId{kPD.value + 1}, keys.r_key, Access::kFlushGlobal), MemoryFault::kBadKey);
}

TEST_F(ProtectionTableTest, NoRegionPromisesPersistence) {
  EXPECT_EQ(table_
                .register_mr(kPD, buffer_.data(), buffer_.size(), kIova,
                             Access::kLocalWrite | AccessFlags(Access::kFlushPersistent))
                .error(),
            Status::kInvalidArgument);
}

TEST(NullRegionTest, GrantsLocallyWhatIsNowhere) {
  ProtectionTable table(16, PRNG(1));
  const PDId pd{1};
  const LKey key = table.register_null(pd).value().l_key;
  for (const Access need : {Access::kLocalRead, Access::kLocalWrite}) {
    const Resolved at = table.local(pd, key, 0x1234, 1u << 30, need);
    EXPECT_TRUE(at);
    EXPECT_EQ(at.data, nullptr);
  }
  EXPECT_EQ(table.local(PDId{2}, key, 0, 8, Access::kLocalRead).fault, MemoryFault::kBadKey);
  EXPECT_EQ(table.remote(pd, QPN{1}, RKey{key.value}, 0, 8, Access::kRemoteRead).fault,
            MemoryFault::kBadKey);
  EXPECT_TRUE(table.pd_in_use(pd));
  EXPECT_EQ(table.reregister_mr(key, {}).error(), Status::kNotFound);
  EXPECT_EQ(table.deregister_mr(key), Status::kOk);
  EXPECT_FALSE(table.pd_in_use(pd));
}

TEST(NullRegionTest, PeersMayWriteToItWhereTheyAreAllowedTo) {
  ProtectionTable table(16, PRNG(1));
  const PDId pd{1};
  const RKey key =
      table.register_null(pd, Access::kLocalWrite | Access::kRemoteWrite).value().r_key;
  const Resolved at = table.remote(pd, QPN{1}, key, 0x1234, 1u << 30, Access::kRemoteWrite);
  EXPECT_TRUE(at);
  EXPECT_EQ(at.data, nullptr);
  EXPECT_EQ(table.remote(pd, QPN{1}, key, 0, 8, Access::kRemoteRead).fault, MemoryFault::kAccess);
  EXPECT_EQ(table.remote(PDId{2}, QPN{1}, key, 0, 8, Access::kRemoteWrite).fault,
            MemoryFault::kBadKey);
}

TEST(NullRegionTest, NoOtherRightsThanWriting) {
  ProtectionTable table(16, PRNG(1));
  for (const Access access : {Access::kRemoteRead, Access::kRemoteAtomic, Access::kMWBind})
    EXPECT_EQ(table.register_null(PDId{1}, Access::kLocalWrite | access).error(),
              Status::kInvalidArgument);
  EXPECT_EQ(table.register_null(PDId{1}, Access::kRemoteWrite).error(), Status::kInvalidArgument);
  EXPECT_EQ(table.size(), 0u);
}

}  // namespace
}  // namespace verbena
