// Copies of memory that end late, through gathers, scatters and stores.
#include "memory/copy_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "memory/keys_for_test.h"
#include "memory/late_memory_for_test.h"
#include "memory/sg_walk.h"

namespace verbena {
namespace {

using test::kPD;
using test::kQP;

constexpr u64 kBytes = 64 << 10;
constexpr u64 kStart = 0x10000;
constexpr AccessFlags kEverything = Access::kLocalWrite | Access::kRemoteWrite |
                                    Access::kRemoteRead | AccessFlags(Access::kRemoteAtomic);

class CopyQueueTest : public testing::Test {
 protected:
  CopyQueueTest() {
    std::iota(bytes_.begin(), bytes_.end(), u8{0});
    table_.copies().use_staging(std::shared_ptr<u8[]>(new u8[CopyQueue::kStagingBytes]));
    key_ = table_.register_far(kPD, memory_, 0, kBytes, kStart, kEverything)->l_key;
  }
  ~CopyQueueTest() override { memory_->finish(); }

  void poll() { table_.copies().poll(table_.far(), lane_); }
  u8* at(u64 offset) {
    return table_.remote(kPD, kQP, RKey{key_.value}, kStart + offset, 8, Access::kRemoteWrite).data;
  }
  MemoryFault write(u64 offset, Bytes from) {
    return store_payload(table_, at(offset), from, &lane_);
  }
  // Gathers as a sender does that asks again after each look.
  std::vector<u8> gathered(std::span<const SGE> list, u64 offset, u32 length) {
    for (u32 tries = 0; tries < 10000; ++tries) {
      PayloadList out;
      const MemoryFault fault = gather(table_, kPD, list, offset, length, out, &lane_);
      if (fault == MemoryFault::kNone) {
        std::vector<u8> all;
        for (const Bytes part : out.list()) all.insert(all.end(), part.begin(), part.end());
        return all;
      }
      EXPECT_EQ(fault, MemoryFault::kLater);
      poll();
    }
    ADD_FAILURE() << "never arrives";
    return {};
  }
  void drain() {
    for (u32 i = 0; i < 100000 && lane_.is_waiting(); ++i) poll();
  }

  std::vector<u8> bytes_ = std::vector<u8>(kBytes);
  std::shared_ptr<test::LateMemory> memory_ =
      std::make_shared<test::LateMemory>(MutableBytes(bytes_), PRNG(7));
  ProtectionTable table_{8, PRNG(1)};
  CopyLane lane_;
  LKey key_;
};

TEST_F(CopyQueueTest, AGatherAsksAgainUntilTheBytesHaveArrived) {
  const SGE sge{kStart, kBytes, key_};
  for (u64 offset = 0; offset < kBytes; offset += 4096)
    EXPECT_TRUE(
        std::ranges::equal(gathered({&sge, 1}, offset, 4096), Bytes(bytes_).subspan(offset, 4096)));
}

TEST_F(CopyQueueTest, PiecesOfOnePacketArriveTogether) {
  const std::vector<SGE> list = {
      {kStart, 100, key_}, {kStart + 5000, 300, key_}, {kStart, 50, key_}, {kStart, 100, key_}};
  std::vector<u8> expected(bytes_.begin(), bytes_.begin() + 100);
  expected.insert(expected.end(), bytes_.begin() + 5000, bytes_.begin() + 5300);
  expected.insert(expected.end(), bytes_.begin(), bytes_.begin() + 50);
  expected.insert(expected.end(), bytes_.begin(), bytes_.begin() + 100);
  EXPECT_EQ(gathered(list, 0, 550), expected);
}

TEST_F(CopyQueueTest, TheNextMessageReadsItsBytesAnew) {
  const SGE sge{kStart, 64, key_};
  (void)gathered({&sge, 1}, 0, 64);
  bytes_[3] = 0xcc;
  EXPECT_EQ(gathered({&sge, 1}, 0, 64)[3], 0xcc);
}

// A message that is sent again begins to read its bytes, but then it is acknowledged.
TEST_F(CopyQueueTest, BytesReadForAnotherMessageAreNotUsed) {
  const SGE sge{kStart, 4096, key_};
  u32 message = 1;
  for (MemoryFault fault = MemoryFault::kNone; fault != MemoryFault::kLater; ++message) {
    PayloadList out;
    lane_.read_for(message);
    fault = gather(table_, kPD, {&sge, 1}, 0, 1024, out, &lane_);
  }
  drain();
  for (const u64 offset : {1, 1025, 4095}) bytes_[offset] = 0xcc;
  lane_.read_for(message);
  for (u64 offset = 0; offset < sge.length; offset += 1024)
    EXPECT_TRUE(
        std::ranges::equal(gathered({&sge, 1}, offset, 1024), Bytes(bytes_).subspan(offset, 1024)))
        << offset;
}

TEST_F(CopyQueueTest, ARepeatedPacketIsReadAgain) {
  const SGE sge{kStart, 4096, key_};
  (void)gathered({&sge, 1}, 0, 1024);
  (void)gathered({&sge, 1}, 1024, 1024);
  bytes_[1] = 0xcc;
  EXPECT_EQ(gathered({&sge, 1}, 0, 1024)[1], 0xcc);
  EXPECT_EQ(gathered({&sge, 1}, 1024, 1024)[0], bytes_[1024]);
}

TEST_F(CopyQueueTest, ATicketEndsAfterAllBeforeIt) {
  const std::vector<u8> first(4096, 0xa1), second(4096, 0xb2);
  EXPECT_EQ(write(0, first), MemoryFault::kNone);
  EXPECT_EQ(write(2048, second), MemoryFault::kNone);
  const u64 last = lane_.begun();
  while (!lane_.has_ended(last)) {
    poll();
    if (lane_.has_ended(last - 1)) {
      EXPECT_EQ(bytes_[0], 0xa1);
    }
  }
  EXPECT_EQ(bytes_[2047], 0xa1);
  EXPECT_EQ(bytes_[2048], 0xb2);
  EXPECT_FALSE(lane_.is_waiting());
}

TEST_F(CopyQueueTest, TheBytesOfAWriteMayChangeAtOnce) {
  std::vector<u8> from(100, 0xa1);
  EXPECT_EQ(write(0, from), MemoryFault::kNone);
  std::ranges::fill(from, u8{0});
  drain();
  EXPECT_EQ(bytes_[99], 0xa1);
}

TEST_F(CopyQueueTest, AWriteLongerThanASlotIsSeveral) {
  const std::vector<u8> from(3 * kCopySlotBytes + 5, 0xa1);
  EXPECT_EQ(write(1, from), MemoryFault::kNone);
  drain();
  EXPECT_EQ(bytes_[0], 0);
  EXPECT_TRUE(std::ranges::all_of(Bytes(bytes_).subspan(1, from.size()),
                                  [](u8 byte) { return byte == 0xa1; }));
  EXPECT_EQ(bytes_[1 + from.size()], u8(1 + from.size()));
}

TEST_F(CopyQueueTest, AnAtomicSaysWhatItFound) {
  const u64 before = 41;
  std::memcpy(bytes_.data() + 8, &before, sizeof before);
  CopyQueue& copies = table_.copies();
  EXPECT_EQ(copies.atomic(table_.far(), &lane_, at(8), {.operand = 1}), CopyResult::kDone);
  const u64 add = lane_.begun();
  EXPECT_EQ(copies.atomic(table_.far(), &lane_, at(8),
                          {.op = CopyOp::kCompareSwap, .compare = 42, .operand = 7}),
            CopyResult::kDone);
  drain();
  EXPECT_EQ(lane_.original(add), 41u);
  EXPECT_EQ(lane_.original(add + 1), 42u);
  EXPECT_EQ(bytes_[8], 7);
}

TEST_F(CopyQueueTest, WithoutRoomAWriteAsksForALaterTry) {
  memory_->is_stuck = true;
  const std::vector<u8> from(10, 0xa1);
  u32 begun = 0;
  while (write(0, from) == MemoryFault::kNone) ++begun;
  EXPECT_EQ(begun, CopyLane::kMaxWrites);
  EXPECT_EQ(write(0, from), MemoryFault::kLater);
  memory_->is_stuck = false;
  drain();
  EXPECT_EQ(write(0, from), MemoryFault::kNone);
}

TEST_F(CopyQueueTest, ManyLanesShareTheSlotsAndAllGoOn) {
  memory_->is_stuck = true;
  std::vector<std::unique_ptr<CopyLane>> lanes;
  const std::vector<u8> from(10, 0xa1);
  u32 begun = 0;
  for (u32 i = 0; i < 8; ++i) {
    lanes.push_back(std::make_unique<CopyLane>());
    while (store_payload(table_, at(0), from, lanes.back().get()) == MemoryFault::kNone) ++begun;
  }
  EXPECT_EQ(begun, CopyQueue::kSlots);
  memory_->is_stuck = false;
  lanes.clear();  // what runs still ends
  memory_->finish();
  EXPECT_EQ(write(0, from), MemoryFault::kNone);
}

TEST_F(CopyQueueTest, ForgottenCopiesAreKnownUntilTheyHaveEnded) {
  EXPECT_FALSE(table_.copies().has_orphans());
  memory_->is_stuck = true;
  const std::vector<u8> from(10, 0xa1);
  for (u32 i = 0; i < 5; ++i) EXPECT_EQ(write(0, from), MemoryFault::kNone);
  EXPECT_FALSE(table_.copies().has_orphans());
  lane_.clear();
  EXPECT_TRUE(table_.copies().has_orphans());
  memory_->finish();
  EXPECT_FALSE(table_.copies().has_orphans());
}

TEST_F(CopyQueueTest, TheFirstFailureHasItsMark) {
  const std::vector<u8> from(10, 0xa1);
  lane_.mark({.psn = 5});
  EXPECT_EQ(write(0, from), MemoryFault::kNone);
  drain();
  memory_->is_gone = true;
  lane_.mark({.psn = 6, .is_receive = true});
  EXPECT_EQ(write(0, from), MemoryFault::kNone);
  lane_.mark({.psn = 7});
  EXPECT_EQ(write(0, from), MemoryFault::kNone);
  memory_->finish();
  poll();
  ASSERT_TRUE(lane_.failure().has_value());
  EXPECT_EQ(lane_.failure()->ticket, 2u);
  EXPECT_EQ(lane_.failure()->mark.psn, 6u);
  EXPECT_TRUE(lane_.failure()->mark.is_receive);
  EXPECT_EQ(write(0, from), MemoryFault::kGone);
  lane_.clear();
  EXPECT_FALSE(lane_.failure().has_value());
}

TEST_F(CopyQueueTest, CopiesToAPeerAreInOrderWithWrites) {
  std::vector<u8> peers(kBytes);
  const auto peer = std::make_shared<test::LatePeer>(MutableBytes(peers));
  const auto hold = std::make_shared<const int>(0);
  const std::vector<u8> first(100, 0xa1), second(100, 0xb2);
  EXPECT_EQ(write(0, first), MemoryFault::kNone);
  EXPECT_EQ(table_.copies().copy_peer(table_.far(), &lane_, CopyOp::kToPeer, at(0), 100,
                                      {peer, 500, hold}),
            CopyResult::kDone);
  EXPECT_EQ(write(0, second), MemoryFault::kNone);
  EXPECT_EQ(table_.copies().copy_peer(table_.far(), &lane_, CopyOp::kFromPeer, at(50), 50,
                                      {peer, 500, hold}),
            CopyResult::kDone);
  EXPECT_EQ(lane_.begun(), 4u);
  drain();
  EXPECT_TRUE(lane_.has_ended(4));
  EXPECT_EQ(hold.use_count(), 1);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), peers.begin() + 500));
  EXPECT_EQ(bytes_[49], 0xb2);
  EXPECT_EQ(bytes_[50], 0xa1);
}

TEST_F(CopyQueueTest, ACopyToAPeerThatFailsEndsAndIsKnown) {
  std::vector<u8> peers(kBytes);
  const auto peer = std::make_shared<test::LatePeer>(MutableBytes(peers));
  peer->is_gone = true;
  const u64 before = lane_.begun();
  EXPECT_EQ(
      table_.copies().copy_peer(table_.far(), &lane_, CopyOp::kToPeer, at(0), 100, {peer, 0, {}}),
      CopyResult::kDone);
  drain();
  EXPECT_TRUE(lane_.has_refused_since(before));
  EXPECT_FALSE(lane_.has_refused_since(lane_.begun()));
  EXPECT_FALSE(lane_.failure());
  EXPECT_EQ(write(0, bytes_), MemoryFault::kNone) << "the lane goes on";
}

TEST_F(CopyQueueTest, AReadThatFailsIsGone) {
  memory_->is_gone = true;
  const SGE sge{kStart, 64, key_};
  PayloadList out;
  MemoryFault fault = gather(table_, kPD, {&sge, 1}, 0, 64, out, &lane_);
  memory_->finish();
  if (fault == MemoryFault::kLater) fault = gather(table_, kPD, {&sge, 1}, 0, 64, out, &lane_);
  EXPECT_EQ(fault, MemoryFault::kGone);
}

TEST_F(CopyQueueTest, WithoutALaneSuchMemoryIsGone) {
  const std::vector<u8> from(10);
  EXPECT_EQ(store_payload(table_, at(0), from, nullptr), MemoryFault::kGone);
}

TEST_F(CopyQueueTest, ARegionKnowsWhatStillRuns) {
  memory_->is_stuck = true;
  const std::vector<u8> from(10);
  for (u32 i = 0; i < 5; ++i) EXPECT_EQ(write(0, from), MemoryFault::kNone);
  EXPECT_EQ(memory_->running(), memory_->waiting());
  EXPECT_EQ(table_.deregister_mr(key_), Status::kOk);
  memory_->finish();
  EXPECT_EQ(memory_->running(), 0u);
}

// The words of a region that begins at an odd address are not aligned, whatever the iova.
TEST_F(CopyQueueTest, AlignmentIsThatOfTheMemory) {
  const LKey odd = table_.register_far(kPD, memory_, 3, 100, 0, kEverything)->l_key;
  const Resolved place = table_.local(kPD, odd, 0, 8, Access::kLocalWrite);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place.data) % 8, 3u);
  const std::vector<u8> from = {1, 2};
  EXPECT_EQ(store_payload(table_, place.data, from, &lane_), MemoryFault::kNone);
  drain();
  EXPECT_EQ(bytes_[0], 1);
}

// As RFC 7306 has them: only the bits of the masks are compared and swapped.
TEST_F(CopyQueueTest, AtomicsHaveMasks) {
  const u64 before = 0x1122'3344'5566'7788;
  std::memcpy(bytes_.data(), &before, sizeof before);
  const auto found = [&](const CopyAtomic& atomic) {
    EXPECT_EQ(table_.copies().atomic(table_.far(), &lane_, at(0), atomic), CopyResult::kDone);
    const u64 ticket = lane_.begun();
    drain();
    return lane_.original(ticket).value_or(0);
  };
  EXPECT_EQ(found({.op = CopyOp::kCompareSwap,
                   .compare = 0xff88,
                   .operand = ~u64{0},
                   .compare_mask = 0xff,
                   .swap_mask = 0xff00}),
            before);
  EXPECT_EQ(found({.op = CopyOp::kCompareSwap, .operand = 5, .compare_mask = 0}),
            0x1122'3344'5566'ff88u);
  EXPECT_EQ(found({.operand = 2}), 5u);
  EXPECT_EQ(bytes_[0], 7);
}

TEST_F(CopyQueueTest, RoomIsThatOfTheLaneAndOfTheSlots) {
  memory_->is_stuck = true;
  CopyQueue& copies = table_.copies();
  const std::vector<u8> from(10);
  EXPECT_TRUE(copies.has_room(&lane_, CopyLane::kMaxWrites));
  while (copies.has_room(&lane_, 48)) ASSERT_EQ(write(0, from), MemoryFault::kNone);
  EXPECT_GE(memory_->waiting(), CopyLane::kMaxWrites / 2);
  CopyLane other;
  EXPECT_TRUE(copies.has_room(&other, 48));
  EXPECT_FALSE(copies.has_room(&other, CopyQueue::kSlots));
  memory_->finish();
  poll();
  EXPECT_TRUE(copies.has_room(&lane_, 48));
}

}  // namespace
}  // namespace verbena
