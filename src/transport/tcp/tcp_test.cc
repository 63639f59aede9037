// Both ends of a connection together, against what the RFCs and the analysis of TCP say.
#include <gtest/gtest.h>

#include "transport/tcp/toy_path.h"

namespace verbena::tcp {
namespace {

// --- RFC 6928, 5681: the beginning

TEST(TCP, BeginsWithTheInitialWindow) {
  const Config config = config_of(ControlKind::kReno);
  Sender sender(config);
  sender.on_write(1'000'000, 0, Time());
  Segment segment;
  u32 segments = 0;
  while (sender.poll_segment(Time(), segment)) ++segments;
  EXPECT_EQ(segments, 10u);
}

TEST(TCP, SlowStartDoublesTheWindowInEachRoundTrip) {
  ToyPath path(config_of(ControlKind::kReno), {.rate = gbps(1000), .delay = ms(10)});
  path.write(0, 100'000'000);
  for (u64 round = 0; round < 8; ++round) {
    EXPECT_EQ(path[0].sender.in_flight(), (u64{10} << round) * kMSS) << round;
    path.run_for(ms(20) + us(200));
  }
}

TEST(TCP, AHandshakeComesFirstAndIsRepeated) {
  Config config = config_of(ControlKind::kReno);
  config.handshake = true;
  ToyPath path(config, {.delay = ms(1)});
  bool lose = true;
  path.loses = [&lose](u32, const Segment& s) { return s.syn && std::exchange(lose, false); };
  path.write(0, 1000);
  path.run(Time() + ms(1001));
  EXPECT_EQ(path[0].words.size(), 0u);
  path.run(Time() + ms(1010));
  EXPECT_EQ(path[0].words.size(), 1u);
}

TEST(TCP, GivesUpWhenNothingIsAnswered) {
  Config config = config_of(ControlKind::kReno);
  config.retries = 3;
  ToyPath path(config, {.loss = 1});
  path.write(0, 5000);
  EXPECT_FALSE(path.run(Time() + sec(100)));
  EXPECT_TRUE(path[0].sender.has_failed());
  // RFC 6298, 5.5: 1, 2, 4 and 8 seconds.
  EXPECT_EQ(path.now(), Time() + sec(15));
}

// --- throughput and delivery

TEST(TCP, ALoneFlowTakesTheWholeRate) {
  for (const ControlKind control : {ControlKind::kReno, ControlKind::kCUBIC, ControlKind::kDCTCP}) {
    ToyPath path(config_of(control), {.rate = gbps(1), .delay = us(50), .mark_above = 30'000});
    path.write(0, 20'000'000);
    while (path[0].sender.acknowledged() != 20'000'000 && path.run_for(us(100))) continue;
    const double ideal = 20'000'000 * 8 / 1e9;
    EXPECT_NEAR((path.now() - Time()).seconds() / ideal, 1, 0.03) << static_cast<int>(control);
  }
}

struct Recovery {
  bool sack, rack;
};
class Lossy : public testing::TestWithParam<Recovery> {};

TEST_P(Lossy, EachMessageArrivesOnceAndInOrder) {
  for (const double loss : {0.01, 0.03, 0.1})
    for (const ControlKind control : {ControlKind::kReno, ControlKind::kCUBIC, ControlKind::kDCTCP})
      for (u64 seed = 1; seed <= 2; ++seed) {
        Config config = config_of(control);
        config.sack = GetParam().sack;
        config.rack = GetParam().rack;
        config.rto_min = ms(5);
        ToyPath path(config, {.loss = loss,
                              .acknowledgement_loss = loss,
                              .duplication = loss,
                              .reordering = loss,
                              .seed = seed});
        u64 bytes = 0;
        PRNG prng(seed);
        std::vector<u32> words;
        for (u32 i = 0; i < 100; ++i) {
          const u64 length = 1 + prng.below(20'000);
          bytes += length;
          words.push_back(i);
          path.write(0, length, i);
        }
        EXPECT_FALSE(path.run(Time() + sec(1000))) << "it never ends; seed " << seed;
        EXPECT_EQ(path[0].words, words) << "seed " << seed;
        EXPECT_EQ(path[0].receiver.received(), bytes);
        EXPECT_EQ(path[0].sender.acknowledged(), bytes);
        EXPECT_EQ(path[0].sender.in_flight(), 0u);
        EXPECT_GT(path[0].sender.counters().retransmissions, 0u);
      }
}

INSTANTIATE_TEST_SUITE_P(All, Lossy,
                         testing::Values(Recovery{true, true}, Recovery{true, false},
                                         Recovery{false, false}),
                         [](const auto& recovery) {
                           return recovery.param.rack   ? "RACK"
                                  : recovery.param.sack ? "SACK"
                                                        : "NewReno";
                         });

// --- congestion avoidance

TEST(TCP, ECNSparesLosses) {
  Config config = config_of(ControlKind::kReno);
  config.ecn = true;
  ToyPath path(config, {.rate = gbps(1), .queue_bytes = 1000 * kMSS, .mark_above = 50 * kMSS});
  path.write(0, 20'000'000);
  EXPECT_FALSE(path.run(Time() + sec(10)));
  EXPECT_EQ(path[0].sender.counters().retransmissions, 0u);
  EXPECT_GT(path[0].sender.counters().echoes, 3u);
}

// --- losses

u64 segments_sent_again(const Config& config, std::vector<u64> lost) {
  ToyPath path(config, {.delay = us(100)});
  path.loses = [&lost](u32, const Segment& segment) {
    return std::erase(lost, segment.sequence / kMSS) != 0;
  };
  path.write(0, 100 * kMSS);
  EXPECT_FALSE(path.run(Time() + sec(10)));
  EXPECT_EQ(path[0].words.size(), 1u);
  EXPECT_EQ(path[0].sender.counters().timeouts, 0u);
  EXPECT_EQ(path[0].sender.counters().recoveries, 1u);
  return path[0].sender.counters().retransmissions;
}

TEST(TCP, ALossInTheMiddleCostsNoTimeoutAndOneSegment) {
  Config config = config_of(ControlKind::kReno);
  EXPECT_EQ(segments_sent_again(config, {30}), 1u);
  EXPECT_EQ(segments_sent_again(config, {30, 33, 35}), 3u);
  config.rack = false;
  EXPECT_EQ(segments_sent_again(config, {30}), 1u);
  EXPECT_EQ(segments_sent_again(config, {30, 33, 35}), 3u);
  config.sack = false;
  EXPECT_EQ(segments_sent_again(config, {30}), 1u);
  EXPECT_EQ(segments_sent_again(config, {30, 33, 35}), 3u);
}

// RFC 8985, 7: the last segments have none behind them that would show the loss.
TEST(TCP, AProbeFindsALossAtTheEnd) {
  for (const bool rack : {true, false}) {
    Config config = config_of(ControlKind::kReno);
    config.rack = rack;
    ToyPath path(config, {.delay = us(100)});
    std::vector<u64> lost = {8, 9};
    path.loses = [&lost](u32, const Segment& segment) {
      return std::erase(lost, segment.sequence / kMSS) != 0;
    };
    path.write(0, 10 * kMSS);
    path.run(Time() + ms(2));
    EXPECT_EQ(path[0].words.size(), rack ? 1u : 0u);
    EXPECT_FALSE(path.run(Time() + sec(10)));
    EXPECT_EQ(path[0].words.size(), 1u);
    EXPECT_EQ(path[0].sender.counters().timeouts, rack ? 0u : 1u);
  }
}

// RFC 8985, 3.3: what only comes late is not sent again, once that has been seen.
TEST(TCP, RACKBearsReordering) {
  u64 sent_again[2] = {};
  for (const bool rack : {true, false}) {
    Config config = config_of(ControlKind::kCUBIC);
    config.rack = rack;
    ToyPath path(config, {.rate = gbps(1), .delay = us(200), .reordering = 0.05, .later = us(80)});
    path.write(0, 10'000'000);
    EXPECT_FALSE(path.run(Time() + sec(10)));
    EXPECT_EQ(path[0].words.size(), 1u);
    sent_again[rack ? 1 : 0] = path[0].sender.counters().retransmissions;
  }
  EXPECT_GT(sent_again[0], 100u);
  EXPECT_LT(sent_again[1], sent_again[0] / 10);
}

// RFC 6298, 5.3: as long as a gap stays, segments beyond it do not put the timeout off. Without
// RACK nothing else finds a retransmission that was lost.
TEST(TCP, ALostRetransmissionIsFound) {
  for (const bool rack : {true, false}) {
    Config config = config_of(ControlKind::kReno);
    config.rack = rack;
    config.rto_min = ms(5);
    ToyPath path(config, {.rate = gbps(1), .delay = us(500)});
    u32 losses = 2;
    path.loses = [&losses](u32, const Segment& segment) {
      return segment.sequence == 50 * kMSS && losses != 0 && losses-- != 0;
    };
    path.write(0, u64{1} << 40);
    path.run(Time() + ms(50));
    EXPECT_EQ(path[0].sender.counters().timeouts, rack ? 0u : 1u);
    EXPECT_GT(path[0].sender.acknowledged(), 1000u * kMSS);
  }
}

// --- acknowledgements and flow control

TEST(TCP, EverySecondSegmentIsAcknowledged) {
  const Config config = config_of(ControlKind::kReno);
  Receiver receiver(config);
  Segment out;
  receiver.on_segment({.sequence = 0, .bytes = kMSS}, Time());
  EXPECT_FALSE(receiver.poll_acknowledgement(out));
  EXPECT_EQ(receiver.next_timer(), Time() + ms(40));
  receiver.on_segment({.sequence = kMSS, .bytes = kMSS}, Time());
  ASSERT_TRUE(receiver.poll_acknowledgement(out));
  EXPECT_EQ(out.acknowledgement, 2u * kMSS);
  EXPECT_EQ(receiver.next_timer(), Time::never());
  receiver.on_segment({.sequence = 2 * kMSS, .bytes = kMSS}, Time());
  receiver.on_timer(Time() + ms(40));
  ASSERT_TRUE(receiver.poll_acknowledgement(out));
  EXPECT_EQ(out.acknowledgement, 3u * kMSS);
}

// RFC 2018, 4: the newest block first; RFC 2883: what came twice.
TEST(TCP, BlocksTellWhatIsBeyondAGap) {
  const Config config = config_of(ControlKind::kReno);
  Receiver receiver(config);
  Segment out;
  for (const u64 sequence : {5u, 1u, 2u, 8u}) {
    receiver.on_segment({.sequence = sequence * kMSS, .bytes = kMSS}, Time());
    ASSERT_TRUE(receiver.poll_acknowledgement(out));
    EXPECT_EQ(out.acknowledgement, 0u);
  }
  ASSERT_EQ(out.block_count, 3u);
  EXPECT_EQ(out.blocks[0], (SACKBlock{8 * kMSS, 9 * kMSS}));
  EXPECT_EQ(out.blocks[1], (SACKBlock{1 * kMSS, 3 * kMSS}));
  EXPECT_EQ(out.blocks[2], (SACKBlock{5 * kMSS, 6 * kMSS}));
  receiver.on_segment({.sequence = 0, .bytes = kMSS}, Time());
  ASSERT_TRUE(receiver.poll_acknowledgement(out));
  EXPECT_EQ(out.acknowledgement, 3u * kMSS);
  EXPECT_EQ(out.block_count, 2u);
  EXPECT_FALSE(out.duplicate);
  receiver.on_segment({.sequence = kMSS, .bytes = kMSS}, Time());
  ASSERT_TRUE(receiver.poll_acknowledgement(out));
  EXPECT_TRUE(out.duplicate);
}

// RFC 8257, 3.2: where marks begin or end, what came before is acknowledged as it was.
TEST(TCP, DCTCPsEchoIsThatOfEachSegment) {
  const Config config = config_of(ControlKind::kDCTCP);
  Receiver receiver(config);
  receiver.on_segment({.sequence = 0, .bytes = kMSS, .ecn = ECN::kECT0}, Time());
  receiver.on_segment({.sequence = kMSS, .bytes = kMSS, .ecn = ECN::kCE}, Time());
  Segment out;
  ASSERT_TRUE(receiver.poll_acknowledgement(out));
  EXPECT_EQ(out.acknowledgement, u64{kMSS});
  EXPECT_FALSE(out.ece);
  EXPECT_FALSE(receiver.poll_acknowledgement(out));
  receiver.on_segment({.sequence = 2 * kMSS, .bytes = kMSS, .ecn = ECN::kCE}, Time());
  ASSERT_TRUE(receiver.poll_acknowledgement(out));
  EXPECT_EQ(out.acknowledgement, 3u * kMSS);
  EXPECT_TRUE(out.ece);
}

TEST(TCP, AProgramThatDoesNotReadClosesTheWindow) {
  Config config = config_of(ControlKind::kReno);
  config.receive_buffer = 20 * kMSS;
  ToyPath path(config, {.delay = us(100)});
  path[0].receiver.keep_unread();
  path.write(0, 100 * kMSS);
  path.run(Time() + ms(100));
  EXPECT_EQ(path[0].receiver.received(), 20u * kMSS);
  for (u32 i = 0; i < 20; ++i) {
    path[0].receiver.on_read(5 * kMSS);
    path.run_for(sec(2));  // a probe asks, where news of the window have not been heard
  }
  EXPECT_EQ(path[0].receiver.received(), 100u * kMSS);
}

// RFC 9293, 3.10.7.4: such a segment is not acceptable, and is answered.
TEST(TCP, ASegmentBeyondTheWindowIsNotTaken) {
  Config config = config_of(ControlKind::kReno);
  config.receive_buffer = 2 * kMSS;
  Receiver receiver(config);
  receiver.keep_unread();
  Segment out;
  for (u64 i = 0; i < 3; ++i) receiver.on_segment({.sequence = i * kMSS, .bytes = kMSS}, Time());
  EXPECT_EQ(receiver.received(), 2u * kMSS);
  ASSERT_TRUE(receiver.poll_acknowledgement(out));
  EXPECT_EQ(out.acknowledgement, 2u * kMSS);
  EXPECT_EQ(out.window, 0u);
  receiver.on_read(kMSS);
  receiver.on_segment({.sequence = 2 * kMSS, .bytes = kMSS}, Time());
  EXPECT_EQ(receiver.received(), 3u * kMSS);
}

// Karn's algorithm: RFC 6298, 3. Nobody knows which of the two was acknowledged.
TEST(TCP, ASegmentSentTwiceMeasuresNoRoundTrip) {
  const Config config = config_of(ControlKind::kReno);
  Sender sender(config);
  sender.on_write(2 * kMSS, 0, Time());
  Segment segment;
  while (sender.poll_segment(Time(), segment)) {
  }
  const Time later = sender.next_timer();
  sender.on_timer(later);
  ASSERT_TRUE(sender.poll_segment(later, segment));
  ASSERT_EQ(segment.sequence, 0u);
  const u64 window = config.receive_buffer;
  sender.on_acknowledgement({.acknowledgement = kMSS, .window = window, .ack = true},
                            later + us(9));
  EXPECT_EQ(sender.acknowledged(), u64{kMSS});
  EXPECT_FALSE(sender.round_trip().has_sample());
}

TEST(RoundTrip, IsSmoothedAndTheTimeoutIsFarEnough) {
  RoundTrip round_trip;
  EXPECT_EQ(round_trip.timeout(sec(1), ms(200), sec(60)), sec(1));
  round_trip.on_sample(ms(100));
  EXPECT_EQ(round_trip.smoothed(), ms(100));
  EXPECT_EQ(round_trip.variation(), ms(50));
  EXPECT_EQ(round_trip.timeout(sec(1), ms(10), sec(60)), ms(300));
  round_trip.on_sample(ms(180));
  EXPECT_EQ(round_trip.smoothed(), ms(110));      // 7/8 * 100 + 1/8 * 180
  EXPECT_EQ(round_trip.variation(), us(57'500));  // 3/4 * 50 + 1/4 * 80
  EXPECT_EQ(round_trip.least(), ms(100));
}

}  // namespace
}  // namespace verbena::tcp
