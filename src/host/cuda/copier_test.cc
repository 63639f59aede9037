// GPU memory as far memory, on the stand-in for the CUDA driver (tests/standin/libcuda.cc).
#include "host/cuda/copier.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "host/cuda/peer_region.h"
#include "host/cuda/region.h"
#include "memory/protection_table.h"
#include "memory/sg_walk.h"
#include "tests/support/standin_cuda.h"

namespace verbena::host::cuda {
namespace {

constexpr u64 kBytes = 256 << 10;
constexpr PDId kDomain{1};
constexpr AccessFlags kRights = Access::kLocalWrite | Access::kRemoteWrite | Access::kRemoteRead |
                                AccessFlags(Access::kRemoteAtomic);

class CopierTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(cuda_.library, nullptr);
    ASSERT_EQ(cuda_.ctx_create(&context_, 0, 0), 0);
    ASSERT_EQ(cuda_.mem_alloc(&gpu_, kBytes), 0);
    const FoundRegion found = find_region(reinterpret_cast<void*>(gpu_), kBytes);
    ASSERT_TRUE(found && *found);
    region_ = **found;
    auto staging = region_->make_staging(CopyQueue::kStagingBytes);
    ASSERT_TRUE(staging.has_value());
    table_.copies().use_staging(std::move(*staging));
    key_ = table_.register_far(kDomain, region_, 0, kBytes, 0, kRights)->l_key;
  }
  void TearDown() override { cuda_.ctx_set_current(nullptr); }

  u8* at(u64 offset) { return table_.local(kDomain, key_, offset, 1, Access::kLocalWrite).data; }
  void poll(CopyLane& lane) { table_.copies().poll(table_.far(), lane); }
  void write(CopyLane& lane, u64 offset, Bytes from) {
    while (store_payload(table_, at(offset), from, &lane) == MemoryFault::kLater) poll(lane);
  }
  void drain(CopyLane& lane) {
    while (lane.begun() != 0 && !lane.has_ended(lane.begun()) && !lane.failure()) poll(lane);
  }
  std::vector<u8> on_gpu() {
    std::vector<u8> all(kBytes);
    EXPECT_EQ(cuda_.to_host(all.data(), gpu_, kBytes), 0);
    return all;
  }

  const test::StandinCuda cuda_{VERBENA_STANDIN_CUDA};
  void* context_ = nullptr;
  test::StandinCuda::Pointer gpu_ = 0;
  std::shared_ptr<CudaRegion> region_;
  ProtectionTable table_{8, PRNG(1)};
  LKey key_;
};

// The last of many writes to the same bytes is what is there, in each of many lanes.
TEST_F(CopierTest, WritesOfALaneTakeEffectInOrder) {
  std::vector<std::unique_ptr<CopyLane>> lanes;
  for (u32 i = 0; i < 12; ++i) lanes.push_back(std::make_unique<CopyLane>());
  for (u32 round = 1; round <= 40; ++round)
    for (u32 i = 0; i < lanes.size(); ++i) {
      const std::vector<u8> from(5000, static_cast<u8>(round));
      write(*lanes[i], u64{i} * 8000 + i, from);
    }
  for (const auto& lane : lanes) drain(*lane);
  const std::vector<u8> all = on_gpu();
  for (u32 i = 0; i < lanes.size(); ++i)
    for (u32 byte = 0; byte < 5000; ++byte) ASSERT_EQ(all[i * 8000 + i + byte], 40) << i;
}

TEST_F(CopierTest, AReadSeesTheWritesOfItsLane) {
  CopyLane lane;
  const SGE sge{0, kBytes, key_};
  for (u32 round = 1; round <= 60; ++round) {
    const std::vector<u8> from(3000, static_cast<u8>(round));
    write(lane, 100, from);
    PayloadList got;
    while (gather(table_, kDomain, {&sge, 1}, 100, 3000, got, &lane) == MemoryFault::kLater)
      poll(lane);
    ASSERT_EQ(got.size_bytes, 3000u);
    EXPECT_EQ(std::memcmp(got.parts[0].data(), from.data(), 3000), 0) << round;
  }
}

TEST_F(CopierTest, AtomicsOfAllLanesAddUp) {
  std::vector<std::unique_ptr<CopyLane>> lanes;
  for (u32 i = 0; i < 5; ++i) lanes.push_back(std::make_unique<CopyLane>());
  const std::vector<u8> zero(8, 0);
  write(*lanes[0], 64, zero);
  drain(*lanes[0]);
  for (u32 round = 0; round < 20; ++round)
    for (const auto& lane : lanes)
      ASSERT_EQ(table_.copies().atomic(table_.far(), lane.get(), at(64), {.operand = 3}),
                CopyResult::kDone);
  for (const auto& lane : lanes) drain(*lane);
  u64 sum = 0;
  const std::vector<u8> all = on_gpu();
  std::memcpy(&sum, all.data() + 64, sizeof sum);
  EXPECT_EQ(sum, 5u * 20 * 3);
}

TEST_F(CopierTest, WhatWasFreedAndAllocatedAgainIsGone) {
  CopyLane lane;
  const std::vector<u8> from(100, 1);
  ASSERT_EQ(cuda_.mem_free(gpu_), 0);
  write(lane, 0, from);
  while (!lane.failure()) poll(lane);
  EXPECT_EQ(lane.failure()->ticket, 1u);
}

// Within one process no handle is opened.
TEST_F(CopierTest, CopiesToAPeerStayOnTheGPU) {
  ASSERT_NE(region_->handle(), nullptr);
  const auto peer = CudaPeerRegion::make(*region_->handle(), CudaPeerRegion::Owner::kThisProcess);
  ASSERT_NE(peer, nullptr);
  CopyLane lane;
  const std::vector<u8> from(1000, 7);
  write(lane, 100, from);
  drain(lane);
  const unsigned long long before = cuda_.count("copies");
  const auto copy = [&](CopyOp op, u64 offset, u64 of_peer) {
    EXPECT_EQ(
        table_.copies().copy_peer(table_.far(), &lane, op, at(offset), 1000, {peer, of_peer, {}}),
        CopyResult::kDone);
  };
  copy(CopyOp::kToPeer, 100, 5001);
  copy(CopyOp::kFromPeer, 9000, 5001);
  drain(lane);
  EXPECT_EQ(cuda_.count("copies"), before);
  const std::vector<u8> all = on_gpu();
  for (const u64 place : {5001, 9000})
    EXPECT_EQ(std::memcmp(all.data() + place, from.data(), 1000), 0) << place;
}

TEST_F(CopierTest, ACopyToAPeerThatIsFreedIsRefused) {
  test::StandinCuda::Pointer other = 0;
  ASSERT_EQ(cuda_.mem_alloc(&other, kBytes), 0);
  const FoundRegion found = find_region(reinterpret_cast<void*>(other), kBytes);
  ASSERT_TRUE(found && *found);
  const auto peer = CudaPeerRegion::make(*(**found)->handle(), CudaPeerRegion::Owner::kThisProcess);
  ASSERT_EQ(cuda_.mem_free(other), 0);
  CopyLane lane;
  EXPECT_EQ(
      table_.copies().copy_peer(table_.far(), &lane, CopyOp::kToPeer, at(0), 1000, {peer, 0, {}}),
      CopyResult::kDone);
  drain(lane);
  EXPECT_TRUE(lane.has_refused_since(0));
}

TEST_F(CopierTest, MemoryOfAnotherProcessNeedsAHandle) {
  FarHandle handle = *region_->handle();
  EXPECT_NE(CudaPeerRegion::make(handle, CudaPeerRegion::Owner::kAnother), nullptr);
  handle.opaque = {};
  EXPECT_EQ(CudaPeerRegion::make(handle, CudaPeerRegion::Owner::kAnother), nullptr);
}

TEST_F(CopierTest, ARegionThatGoesWaitsForItsCopies) {
  cuda_.control("stuck", 1);
  CopyLane lane;
  const std::vector<u8> from(100, 1);
  for (u32 i = 0; i < 50; ++i) write(lane, 0, from);
  EXPECT_EQ(table_.deregister_mr(key_), Status::kOk);
  lane.clear();
  EXPECT_NE(region_->running(), 0u);
  cuda_.control("stuck", 0);
  while (region_->running() != 0) {
  }
}

TEST_F(CopierTest, AddressesOfNoGPUAreNotFound) {
  int here = 0;
  EXPECT_FALSE(find_region(&here, sizeof here).has_value());
  EXPECT_FALSE(find_region(nullptr, 10).has_value());
  const FoundRegion crossing = find_region(reinterpret_cast<void*>(gpu_ + 1), kBytes);
  ASSERT_TRUE(crossing.has_value());
  EXPECT_EQ(crossing->error().error, EFAULT);
}

TEST_F(CopierTest, WithoutRoomForPinnedMemoryThereIsNone) {
  cuda_.control("registrations", 0);
  const auto staging = region_->make_staging(1 << 20);
  cuda_.control("registrations", -1);
  ASSERT_FALSE(staging.has_value());
  EXPECT_EQ(staging.error().error, ENOMEM);
}

}  // namespace
}  // namespace verbena::host::cuda
