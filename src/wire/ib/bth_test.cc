#include "wire/ib/bth.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena {
namespace {

using test::kIPv4TransportAt;

TEST(BTHTest, FromCapture) {
  // tests/captures/rxe-rc-write.pcap, frame 1, as tshark prints it: RC RDMA WRITE Only (10),
  // MigReq 0, Pad 0, TVer 0, P_Key 65535, DestQP 0x000012, Acknowledge Request 1, PSN 655360
  test::expect_golden<BTH>({"rxe-rc-write.pcap", 1, kIPv4TransportAt},
                           {0x0a, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x12, 0x80, 0x0a, 0x00, 0x00},
                           {.opcode = {Service::kRC, Op::kRDMAWriteOnly},
                            .dest_qp = QPN{0x12},
                            .ack_req = true,
                            .psn = PSN{655360}});
}

TEST(BTHTest, WithPad) {
  // tests/captures/rxe-ud.pcap, frame 3, as tshark prints it: UD SEND only with Immediate (101),
  // MigReq 0, Pad 3, P_Key 65535, DestQP 0x000016, Acknowledge Request 0, PSN 655362
  test::expect_golden<BTH>({"rxe-ud.pcap", 3, kIPv4TransportAt},
                           {0x65, 0x30, 0xff, 0xff, 0x00, 0x00, 0x00, 0x16, 0x00, 0x0a, 0x00, 0x02},
                           {.opcode = {Service::kUD, Op::kSendOnlyWithImmediate},
                            .pad_count = 3,
                            .dest_qp = QPN{0x16},
                            .psn = PSN{655362}});
}

TEST(BTHTest, EveryFieldFull) {
  test::expect_both_ways<BTH>(
      {0x17, 0xf0, 0x12, 0x34, 0xc0, 0xab, 0xcd, 0xef, 0x80, 0xfe, 0xdc, 0xba},
      {.opcode = {Service::kRC, Op::kSendOnlyWithInvalidate},
       .solicited_event = true,
       .mig_req = true,
       .pad_count = 3,
       .p_key = PKey{0x1234},
       .fecn = true,
       .becn = true,
       .dest_qp = QPN{0xabcdef},
       .ack_req = true,
       .psn = PSN{0xfedcba}});
}

TEST(BTHTest, EveryFlagHasItsOwnBit) {
  const auto encoded = [](const BTH& bth) {
    std::array<u8, BTH::kSize> bytes{};
    bth.encode(bytes);
    return bytes;
  };
  const PKey none{0};
  EXPECT_EQ(encoded({.solicited_event = true, .p_key = none})[1], 0x80);
  EXPECT_EQ(encoded({.mig_req = true, .p_key = none})[1], 0x40);
  EXPECT_EQ(encoded({.pad_count = 1, .p_key = none})[1], 0x10);
  EXPECT_EQ(encoded({.p_key = none, .fecn = true})[4], 0x80);
  EXPECT_EQ(encoded({.p_key = none, .becn = true})[4], 0x40);
  EXPECT_EQ(encoded({.p_key = none, .ack_req = true})[8], 0x80);
}

TEST(BTHTest, OtherTransportVersionsAreRefused) {
  std::array<u8, BTH::kSize> bytes{};
  for (u8 version = 1; version < 16; ++version) {
    bytes[1] = version;
    EXPECT_FALSE(BTH::decode(bytes).has_value()) << int{version};
  }
}

TEST(BTHTest, ReservedBitsAreIgnored) {
  std::array<u8, BTH::kSize> bytes{};
  const std::optional<BTH> plain = BTH::decode(bytes);
  bytes[4] = 0x3f;
  bytes[8] = 0x3f;
  EXPECT_EQ(BTH::decode(bytes), plain);
}

TEST(BTHTest, TheFirstReservedBitBesideAIsOursAndNobodyElseSendsIt) {
  std::array<u8, BTH::kSize> bytes{};
  BTH{.takes_sack = true}.encode(bytes);
  EXPECT_EQ(bytes[8], 0x40);
  EXPECT_EQ(BTH::decode(bytes), (BTH{.takes_sack = true}));
  BTH{.ack_req = true}.encode(bytes);
  EXPECT_EQ(bytes[8], 0x80);
}

TEST(BTHDeathTest, FieldsWiderThanTheWireAreACrash) {
  std::array<u8, BTH::kSize> bytes{};
  EXPECT_DEATH(BTH{.pad_count = 4}.encode(bytes), "pad_count");
  EXPECT_DEATH(BTH{.dest_qp = QPN{0x1000000}}.encode(bytes), "dest_qp");
}

}  // namespace
}  // namespace verbena
