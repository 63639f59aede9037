#include "wire/ib/packet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/prng.h"

namespace verbena {
namespace {

PacketHeaders full_headers(Opcode opcode) {
  return {.bth = {.opcode = opcode, .dest_qp = QPN{0x11}, .ack_req = true, .psn = PSN{0x123456}},
          .xrceth = {.xrc_srq = 0x77},
          .deth = {.q_key = QKey{0x11111111}, .source_qp = QPN{0x22}},
          .feth = {.global = true, .selectivity = FlushSelectivity::kRegion},
          .reth = {.virtual_address = 0x1000, .r_key = RKey{5}, .dma_length = 64},
          .atomic = {.virtual_address = 8, .r_key = RKey{6}, .swap_or_add = 7, .compare = 9},
          .aeth = {.kind = AETHKind::kNAK, .value = 2, .msn = MSN{0xabcdef}},
          .atomic_ack = {.original_data = 0x1122334455667788},
          .imm = {.value = 0xcafe1234},
          .ieth = {.r_key = RKey{0x99}},
          .sack = {.first = PSN{0x123440}, .bits = 0x8000000000000001}};
}

// Returns `h` without the fields that its OpCode does not carry: the result of decode().
PacketHeaders carried(const PacketHeaders& h) {
  const OpcodeTraits& traits = traits_of(h.bth.opcode);
  PacketHeaders out;
  out.bth = h.bth;
  if (traits.xrceth) out.xrceth = h.xrceth;
  if (traits.deth) out.deth = h.deth;
  if (traits.feth) out.feth = h.feth;
  if (traits.reth) out.reth = h.reth;
  if (traits.atomic_eth) out.atomic = h.atomic;
  if (traits.aeth) out.aeth = h.aeth;
  if (traits.atomic_ack_eth) out.atomic_ack = h.atomic_ack;
  if (traits.imm_dt) out.imm = h.imm;
  if (traits.ieth) out.ieth = h.ieth;
  if (traits.sack_eth) out.sack = h.sack;
  return out;
}

std::vector<u8> encoded(const PacketHeaders& headers, std::size_t behind) {
  std::vector<u8> bytes(headers.size() + behind, 0x5a);
  headers.encode(bytes);
  return bytes;
}

template <typename Check>
void for_each_valid_opcode(Check check) {
  for (int byte = 0; byte < 256; ++byte) {
    const Opcode opcode = Opcode::from_byte(static_cast<u8>(byte));
    if (traits_of(opcode).valid) check(opcode);
  }
}

TEST(PacketTest, EveryOpcodeBothWays) {
  for_each_valid_opcode([](Opcode opcode) {
    const PacketHeaders headers = full_headers(opcode);
    const std::size_t payload = traits_of(opcode).payload ? 100 : 0;
    const std::vector<u8> bytes = encoded(headers, payload);
    const std::optional<PacketView> packet = PacketView::decode(bytes);
    ASSERT_TRUE(packet.has_value()) << name_of(opcode);
    EXPECT_EQ(packet->headers, carried(headers)) << name_of(opcode);
    EXPECT_EQ(packet->payload.data(), bytes.data() + headers.size());
    EXPECT_EQ(packet->payload.size(), payload);
    EXPECT_EQ(encoded(packet->headers, payload), bytes) << name_of(opcode);
  });
}

TEST(PacketTest, HeadersMayLieApartFromTheirPayload) {
  const std::vector<u8> payload(100);
  for_each_valid_opcode([&](Opcode opcode) {
    const PacketHeaders headers = full_headers(opcode);
    const std::vector<u8> bytes = encoded(headers, 0);
    const std::optional<PacketView> packet = PacketView::decode(bytes, payload);
    ASSERT_EQ(packet.has_value(), traits_of(opcode).payload) << name_of(opcode);
    EXPECT_TRUE(PacketView::decode(bytes, std::span<const u8>()).has_value()) << name_of(opcode);
    EXPECT_FALSE(PacketView::decode(std::span(bytes).first(bytes.size() - 1), payload).has_value());
    EXPECT_FALSE(PacketView::decode(encoded(headers, 1), payload).has_value());
    if (!packet) return;
    EXPECT_EQ(packet->headers, carried(headers)) << name_of(opcode);
    EXPECT_EQ(packet->payload.data(), payload.data());
  });
}

// Values of the packet before appear in no field that the OpCode carries.
TEST(PacketTest, AViewMayBeUsedAgain) {
  PacketView view;
  for_each_valid_opcode([&](Opcode opcode) {
    PacketHeaders headers = full_headers(opcode);
    headers.bth.psn = PSN{opcode.to_byte()};
    const std::size_t payload = traits_of(opcode).payload ? 100 : 0;
    const std::vector<u8> bytes = encoded(headers, payload);
    ASSERT_TRUE(view.assign(bytes)) << name_of(opcode);
    EXPECT_EQ(carried(view.headers), carried(headers)) << name_of(opcode);
    EXPECT_EQ(view.payload.data(), bytes.data() + headers.size());
    EXPECT_EQ(view.payload.size(), payload);
    EXPECT_FALSE(view.assign(std::span(bytes).first(headers.size() - 1)));
  });
}

TEST(PacketTest, TooShortForItsOpcodeIsRefused) {
  for_each_valid_opcode([](Opcode opcode) {
    const std::vector<u8> bytes = encoded(full_headers(opcode), 0);
    for (std::size_t n = 0; n < bytes.size(); ++n)
      EXPECT_FALSE(PacketView::decode(std::span(bytes).first(n)).has_value())
          << name_of(opcode) << ' ' << n;
  });
}

TEST(PacketTest, PayloadWhereNoneMayBeIsRefused) {
  for_each_valid_opcode([](Opcode opcode) {
    const std::vector<u8> bytes = encoded(full_headers(opcode), 4);
    EXPECT_EQ(PacketView::decode(bytes).has_value(), traits_of(opcode).payload) << name_of(opcode);
  });
}

TEST(PacketTest, PadIsTakenOffThePayload) {
  PacketHeaders headers = full_headers({Service::kRC, Op::kSendOnly});
  headers.bth.pad_count = 3;
  const std::optional<PacketView> packet = PacketView::decode(encoded(headers, 64));
  ASSERT_TRUE(packet.has_value());
  EXPECT_EQ(packet->payload.size(), 61u);
}

TEST(PacketTest, PadLongerThanThePayloadIsRefused) {
  PacketHeaders headers = full_headers({Service::kRC, Op::kSendOnly});
  for (u8 pad = 0; pad < 4; ++pad) {
    headers.bth.pad_count = pad;
    for (std::size_t n = 0; n < 4; ++n)
      EXPECT_EQ(PacketView::decode(encoded(headers, n)).has_value(), pad <= n);
  }
}

TEST(PacketTest, ReservedOpcodesAndVersionsAreRefused) {
  std::vector<u8> bytes(100);
  for (int byte = 0; byte < 256; ++byte) {
    bytes[0] = static_cast<u8>(byte);
    const OpcodeTraits& traits = traits_of(Opcode::from_byte(bytes[0]));
    EXPECT_EQ(PacketView::decode(bytes).has_value(), traits.valid && traits.payload) << byte;
  }
  bytes[0] = Opcode{Service::kRC, Op::kSendOnly}.to_byte();
  bytes[1] = 1;  // TVer
  EXPECT_FALSE(PacketView::decode(bytes).has_value());
}

TEST(PacketTest, AForbiddenSyndromeRefusesThePacket) {
  std::vector<u8> bytes = encoded(full_headers({Service::kRC, Op::kAcknowledge}), 0);
  bytes[BTH::kSize] |= 0x80;
  EXPECT_FALSE(PacketView::decode(bytes).has_value());
}

TEST(PacketTest, NoBytesMakeItReadOutOfBounds) {  // under the address sanitizer
  PRNG prng(1);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<u8> bytes(prng.below(64));
    std::ranges::generate(bytes, [&prng] { return static_cast<u8>(prng.next()); });
    if (bytes.size() > 1) bytes[1] &= 0xf0;  // TVer 0, else nearly none gets far
    const std::optional<PacketView> packet = PacketView::decode(bytes);
    if (!packet) continue;
    EXPECT_EQ(packet->headers.size() + packet->payload.size() + packet->headers.bth.pad_count,
              bytes.size());
  }
}

TEST(PacketDeathTest, EncodingAReservedOpcodeOrIntoTooLittleIsACrash) {
  std::vector<u8> bytes(kMaxHeadersSize);
  EXPECT_DEATH(full_headers({Service::kRD, Op::kSendOnly}).encode(bytes), "valid");
  bytes.resize(kMaxHeadersSize - 1);
  EXPECT_DEATH(full_headers({Service::kXRC, Op::kCmpSwap}).encode(bytes), "headers_size");
}

TEST(PacketTest, TheMostHeadersAreXRCAtomics) {
  std::size_t most = 0;
  for_each_valid_opcode([&most](Opcode opcode) {
    most = std::max<std::size_t>(most, traits_of(opcode).headers_size);
  });
  EXPECT_EQ(most, kMaxHeadersSize);
}

}  // namespace
}  // namespace verbena
