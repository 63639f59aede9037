#include "faults/filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "faults/spec.h"

namespace verbena::faults {
namespace {

constexpr Opcode kSendOnly{Service::kRC, Op::kSendOnly}, kAck{Service::kRC, Op::kAcknowledge};
constexpr Time kStart = Time() + sec(100);

FaultFilter filter(std::string_view spec, u64 seed = 1) {
  auto rules = parse_rules(spec);
  EXPECT_TRUE(rules.has_value()) << (rules ? "" : rules.error());
  return {std::move(*rules), seed, kStart};
}

PacketInfo packet(u32 psn, u32 qp = 0x11, Opcode opcode = kSendOnly) {
  return {.direction = Direction::kTransmit,
          .opcode = opcode,
          .psn = PSN{psn},
          .local_qp = QPN{qp},
          .peer = *GID::parse("10.0.0.2"),
          .size_bytes = 1024};
}

// "x" for each packet that is dropped, "." for one that is not.
std::string fates(FaultFilter& filter, u32 count, u32 qp = 0x11) {
  std::string all;
  for (u32 psn = 0; psn < count; ++psn)
    all += filter.judge(packet(psn, qp), kStart).dropped ? 'x' : '.';
  return all;
}

TEST(FaultFilterTest, NoRulesTouchNothing) {
  FaultFilter f = filter("");
  EXPECT_TRUE(f.judge(packet(1), kStart).is_untouched());
}

TEST(FaultFilterTest, OccurrencesAreCountedFromOne) {
  FaultFilter third = filter("loss nth=3");
  EXPECT_EQ(fates(third, 6), "..x...");
  FaultFilter from_third = filter("loss nth=3- count=2");
  EXPECT_EQ(fates(from_third, 6), "..xx..");
  FaultFilter every = filter("loss every=2");
  EXPECT_EQ(fates(every, 6), ".x.x.x");
}

TEST(FaultFilterTest, OnlyWhatIsSelectedCounts) {
  FaultFilter f = filter("loss opcode=ack nth=2");
  EXPECT_FALSE(f.judge(packet(1, 0x11, kAck), kStart).dropped);
  EXPECT_FALSE(f.judge(packet(2), kStart).dropped);
  EXPECT_TRUE(f.judge(packet(3, 0x11, kAck), kStart).dropped);
  EXPECT_EQ(f.counters()[0].selected, 2u);
  EXPECT_EQ(f.counters()[0].applied, 1u);
}

TEST(FaultFilterTest, SelectsByQPDirectionPeerPSNAndMessage) {
  const auto drops = [](std::string_view spec, const PacketInfo& p) {
    return filter(spec).judge(p, kStart).dropped;
  };
  EXPECT_TRUE(drops("loss qp=0x11", packet(1)));
  EXPECT_FALSE(drops("loss qp=0x12", packet(1)));
  EXPECT_TRUE(drops("loss dir=tx", packet(1)));
  EXPECT_FALSE(drops("loss dir=rx", packet(1)));
  EXPECT_TRUE(drops("loss peer=10.0.0.2", packet(1)));
  EXPECT_FALSE(drops("loss peer=10.0.0.3", packet(1)));
  EXPECT_TRUE(drops("loss psn=5-9", packet(9)));
  EXPECT_FALSE(drops("loss psn=5-9", packet(10)));
  FaultFilter second = filter("loss message=2");
  EXPECT_EQ(fates(second, 3), ".x.");
}

TEST(FaultFilterTest, TimeWindow) {
  FaultFilter f = filter("blackhole from=10ms for=5ms");
  EXPECT_FALSE(f.judge(packet(1), kStart + ms(9)).dropped);
  EXPECT_TRUE(f.judge(packet(1), kStart + ms(10)).dropped);
  EXPECT_TRUE(f.judge(packet(1), kStart + us(14'999)).dropped);
  EXPECT_FALSE(f.judge(packet(1), kStart + ms(15)).dropped);
}

TEST(FaultFilterTest, AFlappingLink) {
  FaultFilter f = filter("flap up=10ms down=1ms");
  EXPECT_FALSE(f.judge(packet(1), kStart + us(9'999)).dropped);
  EXPECT_TRUE(f.judge(packet(1), kStart + us(10'500)).dropped);
  EXPECT_FALSE(f.judge(packet(1), kStart + us(11'500)).dropped);
  EXPECT_TRUE(f.judge(packet(1), kStart + us(21'500)).dropped);
}

TEST(FaultFilterTest, LossHasItsProbability) {
  FaultFilter f = filter("loss 10%");
  const std::string all = fates(f, 20'000);
  const auto lost = std::ranges::count(all, 'x');
  EXPECT_NEAR(static_cast<double>(lost), 2000, 150);  // 3.5 sigma
}

// Gilbert-Elliott: mean burst length 1 / leave, share of loss enter / (enter + leave).
TEST(FaultFilterTest, BurstsOfLossHaveTheirLengthAndShare) {
  FaultFilter f = filter("burst-loss enter=1% leave=25%");
  const std::string all = fates(f, 200'000);
  const auto lost = std::ranges::count(all, 'x');
  u64 bursts = all[0] == 'x';
  for (std::size_t i = 1; i < all.size(); ++i) bursts += all[i] == 'x' && all[i - 1] == '.';
  EXPECT_NEAR(static_cast<double>(lost) / static_cast<double>(bursts), 4, 0.3);
  EXPECT_NEAR(static_cast<double>(lost) / 200'000, 0.01 / 0.26, 0.003);
}

TEST(FaultFilterTest, SameSeedSameFates) {
  FaultFilter a = filter("loss 20%", 7), b = filter("loss 20%", 7), c = filter("loss 20%", 8);
  const std::string first = fates(a, 200);
  EXPECT_EQ(first, fates(b, 200));
  EXPECT_NE(first, fates(c, 200));
}

TEST(FaultFilterTest, QPsDoNotDisturbEachOther) {
  FaultFilter alone = filter("loss 20%"), together = filter("loss 20%");
  const std::string expected = fates(alone, 100, 0x11);
  std::string got;
  for (u32 psn = 0; psn < 100; ++psn) {
    got += together.judge(packet(psn, 0x11), kStart).dropped ? 'x' : '.';
    (void)together.judge(packet(psn, 0x22), kStart);
  }
  EXPECT_EQ(got, expected);
}

TEST(FaultFilterTest, DelayKeepsTheOrder) {
  FaultFilter f = filter("delay by=100us jitter=50us");
  Time last = kStart;
  for (u32 psn = 0; psn < 200; ++psn) {
    const Time now = kStart + us(psn);
    const Time comes = now + f.judge(packet(psn), now).delay;
    EXPECT_GE(comes, now + us(100));
    EXPECT_GE(comes, last);
    last = comes;
  }
}

TEST(FaultFilterTest, RateSpacesPacketsAndDropsWhatWouldWaitTooLong) {
  FaultFilter f = filter("rate limit=1Gbit queue=20us");
  // 1090 bytes with Ethernet's share at 1 Gb/s: 8.72 us each.
  EXPECT_EQ(f.judge(packet(0), kStart).delay, ns(8'720));
  EXPECT_EQ(f.judge(packet(1), kStart).delay, ns(17'440));
  EXPECT_EQ(f.judge(packet(2), kStart).delay, ns(26'160));
  EXPECT_TRUE(f.judge(packet(3), kStart).dropped);  // would wait 26 us
}

TEST(FaultFilterTest, RulesAddUpUntilOneDrops) {
  FaultFilter f = filter("mark; delay by=5us; loss nth=2; duplicate");
  const Verdict first = f.judge(packet(0), kStart);
  EXPECT_TRUE(first.marked);
  EXPECT_EQ(first.delay, us(5));
  EXPECT_TRUE(first.copy_delay.has_value());
  const Verdict second = f.judge(packet(1), kStart);
  EXPECT_TRUE(second.dropped);
  EXPECT_FALSE(second.copy_delay.has_value());
  EXPECT_EQ(second.cause->text, "loss nth=2");
}

TEST(FaultFilterTest, OnlyRequestsOfReliableServicesAreRefused) {
  FaultFilter f = filter("nak code=remote-access");
  EXPECT_FALSE(f.judge(packet(1, 0x11, kAck), kStart).dropped);
  EXPECT_FALSE(f.judge(packet(1, 0x12, {Service::kUD, Op::kSendOnly}), kStart).dropped);
  const Verdict refused = f.judge(packet(2), kStart);
  ASSERT_TRUE(refused.answer.has_value());
  EXPECT_EQ(refused.answer->kind, AETHKind::kNAK);
  EXPECT_EQ(refused.answer->value, static_cast<u8>(NAKCode::kRemoteAccessError));
}

// A second NAK would acknowledge the packet that the first one refused.
TEST(FaultFilterTest, WhatFollowsARefusedPacketIsIgnoredUntilItComesAgain) {
  FaultFilter f = filter("rnr nth=2-");
  EXPECT_FALSE(f.judge(packet(7), kStart).dropped);
  EXPECT_TRUE(f.judge(packet(8), kStart).answer.has_value());
  const Verdict behind = f.judge(packet(9), kStart);
  EXPECT_TRUE(behind.dropped);
  EXPECT_FALSE(behind.answer.has_value());
  EXPECT_TRUE(f.judge(packet(8), kStart).answer.has_value());
}

TEST(FaultFilterTest, BehindALostPacketNothingIsRefused) {
  FaultFilter f = filter("loss nth=1; nak code=sequence");
  EXPECT_FALSE(f.judge(packet(8), kStart).answer.has_value());
  EXPECT_FALSE(f.judge(packet(9), kStart).dropped);  // the responder will find the gap itself
  EXPECT_TRUE(f.judge(packet(8), kStart).answer.has_value());
}

// The requester does not repeat a packet that was executed: a gap at that packet would never end.
TEST(FaultFilterTest, ADuplicateIsNotRefused) {
  FaultFilter f = filter("rnr nth=3-4; loss nth=3");
  EXPECT_FALSE(f.judge(packet(8), kStart).dropped);
  EXPECT_FALSE(f.judge(packet(9), kStart).dropped);
  EXPECT_FALSE(f.judge(packet(8), kStart).answer.has_value());
  EXPECT_TRUE(f.judge(packet(10), kStart).answer.has_value());
  EXPECT_FALSE(f.judge(packet(10), kStart).dropped);
}

TEST(FaultFilterTest, ANewConnectionOfTheSameQPIsNoDuplicate) {
  FaultFilter f = filter("rnr nth=2-");
  EXPECT_FALSE(f.judge(packet(0x500000), kStart).dropped);
  EXPECT_TRUE(f.judge(packet(0x200000), kStart).answer.has_value());
}

TEST(FaultFilterTest, Registrations) {
  FaultFilter f = filter("registration-error nth=2");
  EXPECT_FALSE(f.refuses_registration(kStart));
  EXPECT_TRUE(f.judge(packet(1), kStart).is_untouched());  // packets do not count
  EXPECT_TRUE(f.refuses_registration(kStart));
  EXPECT_FALSE(f.refuses_registration(kStart));
}

TEST(FaultFilterTest, FaultsOfObjects) {
  FaultFilter f = filter("qp-error nth=1; cq-overrun nth=2");
  EXPECT_TRUE(f.judge(packet(1), kStart).breaks_qp);
  EXPECT_TRUE(f.judge(packet(2), kStart).overruns_cq);
  EXPECT_FALSE(f.judge(packet(3), kStart).breaks_qp);
}

}  // namespace
}  // namespace verbena::faults
