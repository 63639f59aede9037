#include "explain/packet_history.h"

#include <gmock/gmock.h>

#include "wire/ib/packet.h"

namespace verbena::explain {
namespace {

constexpr QPN kQP{0x4001};

EgressFrame sent(QPN qp, u32 psn) {
  EgressFrame frame;
  frame.source_qp = qp;
  const PacketHeaders headers{
      .bth = {.opcode = {Service::kRC, Op::kSendOnly}, .dest_qp = QPN{0x8001}, .psn = PSN(psn)}};
  frame.headers_size = static_cast<u8>(headers.size());
  headers.encode(std::span(frame.headers).first(headers.size()));
  return frame;
}

struct Arrival {
  Arrival(QPN qp, u32 psn, AETH aeth) {
    const PacketHeaders headers{
        .bth = {.opcode = {Service::kRC, Op::kAcknowledge}, .dest_qp = qp, .psn = PSN(psn)},
        .aeth = aeth};
    bytes.resize(headers.size() + kICRCSize);
    headers.encode(std::span(bytes).first(headers.size()));
    frame.transport = bytes;
  }
  std::vector<u8> bytes;
  IngressFrame frame;
};

TEST(PacketHistoryTest, KeepsWhatAPacketWas) {
  PacketHistory history;
  history.on_sent(sent(kQP, 7), Time::from_ns(10));
  const Arrival nak(kQP, 7, {.kind = AETHKind::kNAK, .value = 2});
  history.on_received(nak.frame, Reception::kAccepted, Time::from_ns(20));

  const std::vector<PacketRecord> packets = history.of(kQP);
  ASSERT_EQ(packets.size(), 2u);
  EXPECT_EQ(packets[0], (PacketRecord{.at = Time::from_ns(10),
                                      .qp = kQP,
                                      .psn = PSN(7),
                                      .transport_bytes = 12,
                                      .opcode = 0x04}));
  EXPECT_EQ(packets[1], (PacketRecord{.at = Time::from_ns(20),
                                      .qp = kQP,
                                      .psn = PSN(7),
                                      .transport_bytes = 16,
                                      .opcode = 0x11,
                                      .syndrome = 0x62,
                                      .direction = Direction::kReceived}));
}

TEST(PacketHistoryTest, RetransmissionsDoNotPushOutTheLastAnswer) {
  PacketHistory history;
  const Arrival ack(kQP, 1, {});
  history.on_received(ack.frame, Reception::kAccepted, Time::from_ns(1));
  for (u32 i = 0; i < 1000; ++i) history.on_sent(sent(kQP, i), Time::from_ns(10 + i));
  const std::vector<PacketRecord> packets = history.of(kQP);
  ASSERT_EQ(packets.size(), 1 + PacketHistory::kDepth);
  EXPECT_EQ(packets.front().direction, Direction::kReceived);
  EXPECT_EQ(packets.back().psn, PSN(999));
}

TEST(PacketHistoryTest, QPsThatShareAPlaceAreKeptApart) {
  PacketHistory history;
  const QPN other{kQP.value + PacketHistory::kPlaces};
  history.on_sent(sent(kQP, 1), Time::from_ns(1));
  history.on_sent(sent(other, 2), Time::from_ns(2));
  ASSERT_EQ(history.of(kQP).size(), 1u);
  EXPECT_EQ(history.of(kQP)[0].psn, PSN(1));
  EXPECT_EQ(history.of(other)[0].psn, PSN(2));
}

TEST(PacketHistoryTest, ALostPacketNamesItsRule) {
  PacketHistory history;
  history.on_sent(sent(kQP, 1), Time::from_ns(1));
  history.on_lost_by_fault(sent(kQP, 1), "loss 1%");
  history.on_sent(sent(kQP, 2), Time::from_ns(2));
  const Arrival ack(kQP, 1, {});
  history.on_lost_by_fault(ack.frame, "blackhole dir=rx", Time::from_ns(3));
  const std::vector<PacketRecord> packets = history.of(kQP);
  ASSERT_EQ(packets.size(), 3u);
  EXPECT_EQ(history.rules().at(packets[0].rule - 1u), "loss 1%");
  EXPECT_EQ(packets[1].rule, 0);
  EXPECT_EQ(history.rules().at(packets[2].rule - 1u), "blackhole dir=rx");
}

TEST(PacketHistoryTest, TooManyRulesShareTheLastNumber) {
  PacketHistory history;
  for (u32 i = 0; i < 2 * PacketHistory::kMaxRules; ++i) {
    history.on_sent(sent(kQP, i), Time::from_ns(i));
    history.on_lost_by_fault(sent(kQP, i), std::to_string(i));
  }
  EXPECT_EQ(history.rules().size(), PacketHistory::kMaxRules);
  EXPECT_EQ(history.of(kQP).back().rule, PacketHistory::kMaxRules);
}

TEST(PacketHistoryTest, WhatIsTooShortIsNotKept) {
  PacketHistory history;
  const std::array<u8, 15> bytes{};
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    IngressFrame frame;
    frame.transport = std::span(bytes).first(size);
    history.on_received(frame, Reception::kMalformed, Time());
    history.on_lost_by_fault(frame, "loss", Time());
  }
  EXPECT_THAT(history.of(QPN{0}), testing::IsEmpty());
}

}  // namespace
}  // namespace verbena::explain
