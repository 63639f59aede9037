#include "memory/published_keys.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "memory/keys_for_test.h"
#include "memory/late_memory_for_test.h"

namespace verbena {
namespace {

using test::kOtherPD;
using test::kPD;

constexpr AccessFlags kReadWriteHere =
    Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead;

class PublishedKeysTest : public testing::Test {
 protected:
  PublishedKeysTest() { table_.publish_to(publisher_); }

  MRKeys add(u64 iova, u64 length, AccessFlags access = kReadWriteHere) {
    return *table_.register_mr(kPD, base_, length, iova, access);
  }
  std::optional<u64> find(RKey key, u64 address, u64 length, Access need = Access::kRemoteWrite,
                          PDId pd = kPD) const {
    const std::optional<PublishedKey> found = keys_->find(pd, key, need);
    return found ? found->locate(address, length) : std::nullopt;
  }

  u8* const base_ = reinterpret_cast<u8*>(0x100000);
  std::unique_ptr<PublishedKeys> keys_ = std::make_unique<PublishedKeys>();
  KeyPublisher publisher_{*keys_};
  ProtectionTable table_{1u << 16, PRNG(1)};
};

TEST_F(PublishedKeysTest, ARegionIsFoundWhereItLies) {
  const MRKeys keys = add(0x5000, 100);
  EXPECT_EQ(find(keys.r_key, 0x5000, 100), 0x100000u);
  EXPECT_EQ(find(keys.r_key, 0x5010, 84, Access::kRemoteRead), 0x100010u);
}

TEST_F(PublishedKeysTest, EachCheckOfARemoteKeyHolds) {
  const MRKeys keys = add(0x5000, 100, Access::kRemoteRead);
  EXPECT_TRUE(find(keys.r_key, 0x5000, 100, Access::kRemoteRead));
  EXPECT_FALSE(find(keys.r_key, 0x5000, 100, Access::kRemoteWrite));
  EXPECT_FALSE(find(keys.r_key, 0x5000, 101, Access::kRemoteRead));
  EXPECT_FALSE(find(keys.r_key, 0x4fff, 10, Access::kRemoteRead));
  EXPECT_FALSE(find(keys.r_key, ~u64{0}, 2, Access::kRemoteRead));
  EXPECT_FALSE(find(keys.r_key, 0x5000, 100, Access::kRemoteRead, kOtherPD));
  EXPECT_FALSE(find(RKey{keys.r_key.value ^ 1}, 0x5000, 100, Access::kRemoteRead));
  EXPECT_FALSE(find(RKey{0}, 0, 1, Access::kRemoteRead));
}

TEST_F(PublishedKeysTest, WhatOnlyItsOwnerUsesCanBeImported) {
  const MRKeys keys = add(0x5000, 100, Access::kLocalWrite);
  EXPECT_FALSE(find(keys.r_key, 0x5000, 100, Access::kRemoteRead));
  const std::optional<PublishedKey> found = keys_->find(keys.r_key.value);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->pd, kPD);
  EXPECT_EQ(found->access, AccessFlags(Access::kLocalWrite));
  EXPECT_EQ(found->locate(0x5010, 84), 0x100010u);
  EXPECT_FALSE(found->locate(0x5010, 85));
  EXPECT_FALSE(keys_->find(keys.r_key.value ^ 1));
  EXPECT_FALSE(keys_->find(0));
}

TEST_F(PublishedKeysTest, WhereALogIsKeptPeersSendPackets) {
  table_.keep_write_log();
  const MRKeys keys = add(0x5000, 100);
  EXPECT_FALSE(find(keys.r_key, 0x5000, 100));
  EXPECT_TRUE(keys_->find(keys.r_key.value));
}

TEST_F(PublishedKeysTest, DomainsAreThereUntilTheyAreWithdrawn) {
  for (const PDId pd : {PDId{0}, PDId{63}, PDId{64}, PDId{65535}}) {
    EXPECT_FALSE(keys_->has(pd));
    publisher_.publish(pd);
    EXPECT_TRUE(keys_->has(pd));
    publisher_.withdraw(pd);
    EXPECT_FALSE(keys_->has(pd));
  }
  publisher_.publish(PDId{65536});
  EXPECT_FALSE(keys_->has(PDId{65536}));
}

// Far memory with a handle is for peers that have the driver, and for nobody else.
class PublishedHandlesTest : public PublishedKeysTest {
 protected:
  PublishedHandlesTest() {
    table_.copies().use_staging(std::shared_ptr<u8[]>(new u8[CopyQueue::kStagingBytes]));
  }
  MRKeys add_far() { return *table_.register_far(kPD, memory_, 4, 100, 0x5004, kReadWriteHere); }
  std::optional<FarHandle> handle_of(RKey key) const {
    const std::optional<PublishedKey> found = keys_->find(kPD, key, Access::kRemoteWrite);
    if (!found || !found->is_far() || !found->locate(0x5004, 100)) return std::nullopt;
    return keys_->handle_of(key, found->span);
  }

  std::vector<u8> bytes_ = std::vector<u8>(104);
  const std::shared_ptr<test::LateMemory> memory_ =
      std::make_shared<test::LateMemory>(MutableBytes(bytes_), PRNG(7));
  const FarHandle handle_{.opaque = {1, 2, 3}, .offset = 4, .address = 0x7004, .identity = 9};
};

TEST_F(PublishedHandlesTest, ComeAndGoWithTheirKeys) {
  memory_->published = handle_;
  const MRKeys keys = add_far();
  EXPECT_EQ(handle_of(keys.r_key), handle_);
  EXPECT_FALSE(keys_->handle_of(keys.r_key, 77));
  ASSERT_EQ(table_.deregister_mr(keys.l_key), Status::kOk);
  EXPECT_FALSE(handle_of(keys.r_key));
  EXPECT_TRUE(publisher_.take_withdrawn());
  EXPECT_TRUE(publisher_.take_unshared());
}

TEST_F(PublishedHandlesTest, FollowAChangeOfRights) {
  memory_->published = handle_;
  const MRKeys keys = add_far();
  const AccessFlags access = Access::kLocalWrite | Access::kRemoteWrite;
  ASSERT_TRUE(table_.reregister_mr(keys.l_key, {.access = &access}));
  EXPECT_EQ(handle_of(keys.r_key), handle_);
  EXPECT_FALSE(keys_->find(kPD, keys.r_key, Access::kRemoteRead));
}

TEST_F(PublishedHandlesTest, AreNotThereForAllMemory) {
  const MRKeys keys = add_far();
  EXPECT_FALSE(keys_->find(kPD, keys.r_key, Access::kRemoteWrite));
  ASSERT_EQ(table_.deregister_mr(keys.l_key), Status::kOk);
  EXPECT_FALSE(publisher_.take_withdrawn());
}

TEST_F(PublishedHandlesTest, AreNotThereWhereALogIsKept) {
  memory_->published = handle_;
  table_.keep_write_log();
  const MRKeys keys = add_far();
  EXPECT_FALSE(keys_->find(kPD, keys.r_key, Access::kRemoteWrite));
}

TEST_F(PublishedKeysTest, AWindowIsNotPublished) {
  const MRKeys region = add(0x5000, 100, kReadWriteHere | Access::kMWBind);
  const RKey window = *table_.allocate_mw(kPD, MWType::k1);
  const RKey bound = *table_.bind_mw(
      kPD, QPN{1}, window, window,
      {.mr_l_key = region.l_key, .address = 0x5000, .length = 10, .access = Access::kRemoteWrite});
  EXPECT_TRUE(table_.remote(kPD, QPN{1}, bound, 0x5000, 10, Access::kRemoteWrite));
  EXPECT_FALSE(find(bound, 0x5000, 10));
}

TEST_F(PublishedKeysTest, DeregistrationWithdraws) {
  const MRKeys keys = add(0x5000, 100);
  EXPECT_FALSE(publisher_.take_withdrawn());
  ASSERT_EQ(table_.deregister_mr(keys.l_key), Status::kOk);
  EXPECT_FALSE(find(keys.r_key, 0x5000, 100));
  EXPECT_TRUE(publisher_.take_withdrawn());
  EXPECT_FALSE(publisher_.take_withdrawn());
}

TEST_F(PublishedKeysTest, ReregistrationReplaces) {
  const MRKeys before = add(0x5000, 100);
  const AccessFlags access = Access::kRemoteRead;
  const MRKeys after = *table_.reregister_mr(before.l_key, {.access = &access});
  EXPECT_FALSE(find(after.r_key, 0x5000, 100));
  EXPECT_TRUE(find(after.r_key, 0x5000, 100, Access::kRemoteRead));
  EXPECT_TRUE(publisher_.take_withdrawn());
  const MRKeys moved = *table_.reregister_mr(
      after.l_key, {.translation = true, .base = base_ + 8, .length = 10, .iova = 0});
  EXPECT_FALSE(find(after.r_key, 0x5000, 100, Access::kRemoteRead));
  EXPECT_EQ(find(moved.r_key, 0, 10, Access::kRemoteRead), 0x100008u);
  // One that fails leaves no region. ibv_rereg_mr(3)
  const AccessFlags illegal = Access::kRemoteWrite;
  ASSERT_FALSE(table_.reregister_mr(moved.l_key, {.access = &illegal}).has_value());
  EXPECT_FALSE(find(moved.r_key, 0, 10, Access::kRemoteRead));
}

TEST_F(PublishedKeysTest, APeerFindsThePagesOfARegionUntilItsKeyIsWithdrawn) {
  const SharedSpan span{.address = 0x101000,
                        .length = 0x1000,
                        .offset = 0x2000,
                        .device = 7,
                        .inode = 8,
                        .descriptor = 9};
  const MRKeys keys = add(0x5000, 0x2000), plain = add(0x9000, 100);
  const auto number_of = [&](RKey key) { return keys_->find(kPD, key, Access::kRemoteRead)->span; };
  EXPECT_EQ(number_of(keys.r_key), 0u);
  table_.share(keys.l_key, span);
  const u64 number = number_of(keys.r_key);
  EXPECT_NE(number, 0u);
  EXPECT_EQ(number_of(plain.r_key), 0u);
  EXPECT_EQ(keys_->span_of(keys.r_key, number), span);
  EXPECT_FALSE(keys_->span_of(keys.r_key, number + 1));
  EXPECT_FALSE(keys_->span_of(keys.r_key, 0));
  ASSERT_EQ(table_.deregister_mr(plain.l_key), Status::kOk);
  EXPECT_FALSE(publisher_.take_unshared());
  ASSERT_EQ(table_.deregister_mr(keys.l_key), Status::kOk);
  EXPECT_TRUE(publisher_.take_unshared());
  EXPECT_FALSE(keys_->span_of(keys.r_key, number));
}

TEST_F(PublishedKeysTest, APageIsNotSharedByWhatTheKeyBecomes) {
  const MRKeys before = add(0x5000, 0x2000);
  table_.share(before.l_key, {.address = 0x100000, .length = 0x1000});
  const AccessFlags access = Access::kRemoteRead;
  const MRKeys after = *table_.reregister_mr(before.l_key, {.access = &access});
  EXPECT_EQ(keys_->find(kPD, after.r_key, Access::kRemoteRead)->span, 0u);
  EXPECT_TRUE(publisher_.take_unshared());
}

TEST_F(PublishedKeysTest, MoreThanThereIsRoomForAreLeftOut) {
  std::vector<MRKeys> all;
  for (u32 i = 0; i < 2 * PublishedKeys::kPlaces; ++i) all.push_back(add(0x5000, 100));
  u32 found = 0;
  for (const MRKeys& keys : all) found += find(keys.r_key, 0x5000, 100).has_value() ? 1 : 0;
  EXPECT_GT(found, PublishedKeys::kPlaces * 3 / 4);
  EXPECT_LE(found, PublishedKeys::kPlaces);
  for (const MRKeys& keys : all) ASSERT_EQ(table_.deregister_mr(keys.l_key), Status::kOk);
  for (const MRKeys& keys : all) EXPECT_FALSE(find(keys.r_key, 0x5000, 100));
  EXPECT_TRUE(find(add(0x5000, 100).r_key, 0x5000, 100));
}

}  // namespace
}  // namespace verbena
