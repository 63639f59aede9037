#include "host/local/ring_headers.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

constexpr std::array kSends{Op::kSendFirst,
                            Op::kSendMiddle,
                            Op::kSendLast,
                            Op::kSendOnly,
                            Op::kSendLastWithImmediate,
                            Op::kSendOnlyWithImmediate,
                            Op::kSendLastWithInvalidate,
                            Op::kSendOnlyWithInvalidate};

RingHeaders ring_of(const PacketHeaders& headers) {
  RingHeaders ring;
  to_ring(headers, ring);
  return ring;
}

RingHeaders acknowledgement_of(const QPAttributes& qp, PSN psn, const AETH& aeth) {
  RingHeaders ring;
  to_ring(qp, psn, aeth, ring);
  return ring;
}

TEST(RingHeadersTest, SendsComeOutAsTheyWentIn) {
  for (const Op op : kSends) {
    PacketHeaders in, out;
    in.bth = {.opcode = {Service::kRC, op},
              .solicited_event = true,
              .mig_req = true,
              .p_key = PKey{0x8001},
              .dest_qp = QPN{0x123456},
              .ack_req = true,
              .takes_sack = true,
              .psn = PSN(0xfedcba)};
    if (traits_of(in.bth.opcode).imm_dt) in.imm.value = 0x80000001;
    if (traits_of(in.bth.opcode).ieth) in.ieth.r_key = RKey{0xf0000001};
    ASSERT_TRUE(fits_ring(in.bth.opcode));
    ASSERT_TRUE(from_ring(ring_of(in), out));
    EXPECT_EQ(out, in) << name_of(in.bth.opcode);
  }
}

TEST(RingHeadersTest, AcknowledgementsComeOutAsTheyWentIn) {
  for (const AETHKind kind : {AETHKind::kACK, AETHKind::kRNRNAK, AETHKind::kNAK}) {
    PacketHeaders in, out;
    in.bth.opcode = {Service::kRC, Op::kAcknowledge};
    in.bth.mig_req = true;
    in.bth.psn = PSN(7);
    in.aeth = {.kind = kind, .value = 0x1f, .msn = MSN(0xffffff)};
    ASSERT_TRUE(from_ring(ring_of(in), out));
    EXPECT_EQ(out, in);
  }
}

TEST(RingHeadersTest, AnAcknowledgementIsThatOfItsPacket) {
  QPAttributes qp;
  qp.dest_qp = QPN{9};
  qp.p_key = PKey{0x8001};
  PacketHeaders out;
  ASSERT_TRUE(from_ring(acknowledgement_of(qp, PSN(5), {.value = 3, .msn = MSN(8)}), out));
  EXPECT_EQ(out.bth, (BTH{.opcode = {Service::kRC, Op::kAcknowledge},
                          .mig_req = true,
                          .p_key = PKey{0x8001},
                          .dest_qp = QPN{9},
                          .psn = PSN(5)}));
  EXPECT_EQ(out.aeth, (AETH{.kind = AETHKind::kACK, .value = 3, .msn = MSN(8)}));
}

TEST(RingHeadersTest, ASendBringsAnAcknowledgement) {
  QPAttributes qp;
  qp.dest_qp = QPN{9};
  qp.p_key = PKey{0x8001};
  const RingHeaders ack = acknowledgement_of(qp, PSN(5), {.value = 3, .msn = MSN(8)});
  PacketHeaders in, out;
  in.bth = {.opcode = {Service::kRC, Op::kSendOnlyWithImmediate},
            .mig_req = true,
            .p_key = PKey{0x8001},
            .dest_qp = QPN{9},
            .psn = PSN(77)};
  in.imm.value = 4;
  RingHeaders send = ring_of(in);
  bring(ack, send);
  EXPECT_FALSE(is_acknowledgement(send));
  ASSERT_TRUE(from_ring(send, out));
  EXPECT_EQ(out, in);
  EXPECT_TRUE(is_acknowledgement(ack));
  Acknowledgement brought;
  EXPECT_FALSE(brought_by(ack, brought));
  ASSERT_TRUE(brought_by(send, brought));
  EXPECT_EQ(brought.psn, PSN(5));
  EXPECT_EQ(brought.aeth, (AETH{.kind = AETHKind::kACK, .value = 3, .msn = MSN(8)}));
}

TEST(RingHeadersTest, WhatNeedsMoreDoesNotFit) {
  for (const Opcode opcode :
       {Opcode{Service::kRC, Op::kRDMAWriteOnly}, Opcode{Service::kRC, Op::kFetchAdd},
        Opcode{Service::kRC, Op::kAtomicAcknowledge}, Opcode{Service::kUC, Op::kSendOnly},
        Opcode{Service::kXRC, Op::kSendOnly}, kSackOpcode, kCNPOpcode}) {
    EXPECT_FALSE(fits_ring(opcode)) << name_of(opcode);
  }
}

TEST(RingHeadersTest, WhatNoOneWritesIsRefused) {
  PacketHeaders out;
  for (u32 opcode = 0; opcode < 256; ++opcode) {
    EXPECT_EQ(from_ring({.opcode = static_cast<u8>(opcode)}, out),
              fits_ring(Opcode::from_byte(static_cast<u8>(opcode))));
  }
}

TEST(RingHeadersTest, AreToldOfAsOfAFrame) {
  QPAttributes qp;
  const RingHeaders headers =
      acknowledgement_of(qp, PSN(5), {.kind = AETHKind::kNAK, .value = 2, .msn = MSN(8)});
  explain::PacketRecord told;
  record(headers, 0, QPN{7}, Time::from_ns(1), told);
  EXPECT_EQ(told.syndrome, 0x62);
  EXPECT_EQ(told.transport_bytes, BTH::kSize + AETH::kSize);
  EXPECT_EQ(told.qp, QPN{7});
}

}  // namespace
}  // namespace verbena::host
