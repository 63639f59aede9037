#include "transport/rc/reorder_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

namespace verbena {
namespace {

constexpr u32 kBytes = 256;

PacketView packet(u32 psn, std::span<const u8> payload) {
  PacketView view;
  view.headers.bth.opcode = {Service::kRC, Op::kRDMAWriteMiddle};
  view.headers.bth.psn = PSN(psn);
  view.payload = payload;
  return view;
}

std::vector<u8> bytes(u8 first, std::size_t count) {
  std::vector<u8> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

std::vector<u8> taken(ReorderBuffer& buffer, u32 psn) {
  const auto view = buffer.take(PSN(psn));
  return view ? std::vector<u8>(view->payload.begin(), view->payload.end()) : std::vector<u8>{};
}

TEST(ReorderBufferTest, GivesBackWhatItWasGivenOnce) {
  ReorderBuffer buffer(64, 16, kBytes);
  EXPECT_TRUE(buffer.empty());
  std::vector<u8> payload = bytes(1, 200);
  PacketView early = packet(7, payload);
  early.headers.bth.opcode = {Service::kRC, Op::kRDMAWriteOnlyWithImmediate};
  early.headers.reth = {.virtual_address = 0x1234, .r_key = RKey{5}, .dma_length = 200};
  early.headers.imm.value = 99;
  buffer.keep(early);
  payload.assign(200, 0);  // the link's buffer is used again
  EXPECT_FALSE(buffer.empty());
  EXPECT_TRUE(buffer.has(PSN(7)));
  const auto view = buffer.take(PSN(7));
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->headers, early.headers);
  const std::vector<u8> expected = bytes(1, 200);
  EXPECT_TRUE(std::ranges::equal(view->payload, expected));
  EXPECT_FALSE(buffer.take(PSN(7)).has_value());
  EXPECT_TRUE(buffer.empty());
}

TEST(ReorderBufferTest, TheFirstOfTwoStays) {
  ReorderBuffer buffer(64, 16, kBytes);
  buffer.keep(packet(7, bytes(1, 10)));
  buffer.keep(packet(7, bytes(50, 10)));
  EXPECT_EQ(taken(buffer, 7), bytes(1, 10));
  EXPECT_TRUE(buffer.empty());
}

TEST(ReorderBufferTest, NeverHoldsMoreThanItsShareAndUsesPlacesAgain) {
  ReorderBuffer buffer(256, 4, kBytes);
  for (u32 round = 0; round < 50; ++round) {
    for (u32 i = 0; i < 6; ++i)
      buffer.keep(packet(round * 7 + i, bytes(static_cast<u8>(round + i), kBytes)));
    for (u32 i = 0; i < 6; ++i) {
      EXPECT_EQ(buffer.has(PSN(round * 7 + i)), i < 4);
      EXPECT_EQ(taken(buffer, round * 7 + i),
                i < 4 ? bytes(static_cast<u8>(round + i), kBytes) : std::vector<u8>{});
    }
  }
}

TEST(ReorderBufferTest, APacketLargerThanAPacketIsNotKept) {
  ReorderBuffer buffer(64, 4, kBytes);
  buffer.keep(packet(1, bytes(0, kBytes + 1)));
  EXPECT_TRUE(buffer.empty());
}

TEST(ReorderBufferTest, PayloadThatIsNowhereIsCounted) {
  ReorderBuffer buffer(64, 4, kBytes);
  buffer.keep(packet(1, std::span<const u8>(static_cast<const u8*>(nullptr), 100)));
  const auto view = buffer.take(PSN(1));
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->payload.data(), nullptr);
  EXPECT_EQ(view->payload.size(), 100u);
}

TEST(ReorderBufferTest, TellsWhatItHasAcrossTheEndOfTheNumbers) {
  ReorderBuffer buffer(128, 64, kBytes);
  for (const u32 psn : {0xfffffeu, 0xffffffu, 0u, 3u}) buffer.keep(packet(psn, {}));
  EXPECT_EQ(buffer.around(PSN(0xffffff)), (SackETH{.first = PSN(0xffffc0), .bits = u64{3} << 62}));
  EXPECT_EQ(buffer.around(PSN(1)), (SackETH{.first = PSN(0), .bits = 0b1001}));
}

}  // namespace
}  // namespace verbena
