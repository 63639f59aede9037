// QPs held to a rate: by the device's calls alone, from a CNP to the time at which a frame comes.
#include <gtest/gtest.h>

#include "device/port/pacer.h"
#include "device/testing.h"
#include "wire/eth/ecn.h"

namespace verbena {
namespace {

using test::config_at;
using test::kGIDA;
using test::kGIDB;
using test::kStart;
using test::Node;
using test::on_the_wire;
using test::received;

constexpr u32 kMTU = 1024;
constexpr u32 kOverhead = 66 + 12 + 4;  // of the middle packets of a WRITE, with BTH and ICRC

// 8 Gb/s: a byte lasts a nanosecond. A CNP halves the rate, and 1 ms later it is back.
DeviceConfig paced(const GID& gid, QPN first_qpn) {
  DeviceConfig config = config_at(gid, first_qpn);
  config.congestion.algorithm = DCQCNParameters{.line_rate = gbps(8),
                                                .min_rate = mbps(8),
                                                .increase_interval = ms(1),
                                                .byte_counter = 0,
                                                .fast_recovery = 100};
  return config;
}

struct PacingTest : ::testing::Test {
  explicit PacingTest() { start(paced(kGIDA, QPN{0x100}), paced(kGIDB, QPN{0x200})); }
  void start(const DeviceConfig& config_a, const DeviceConfig& config_b) {
    a.emplace(config_a);
    b.emplace(config_b);
  }
  struct Ends {
    QueuePair *a, *b;
  };
  Ends connect(QPType type = QPType::kRC) {
    const Ends ends{a->create(type), b->create(type)};
    a->bring_up(ends.a, kGIDB, b->number(ends.b));
    b->bring_up(ends.b, kGIDA, a->number(ends.a));
    return ends;
  }
  SendWR request(SendOp op, u32 length) {
    sge = a->sge(0, length);
    SendWR wr;
    wr.op = op;
    wr.signaled = true;
    wr.sg_list = {&sge, 1};
    wr.remote_address = b->address();
    wr.r_key = b->keys.r_key;
    return wr;
  }
  void write(QueuePair* qp, u32 length) {
    ASSERT_EQ(a->device.post_send(qp, request(SendOp::kRDMAWrite, length), now), PostError::kOk);
  }
  void read(QueuePair* qp, u32 length) {
    ASSERT_EQ(a->device.post_send(qp, request(SendOp::kRDMARead, length), now), PostError::kOk);
  }
  // A's frame, if it has one now; b gets it.
  std::optional<EgressFrame> from_a() { return carry(*a, *b); }
  std::optional<EgressFrame> from_b() { return carry(*b, *a); }
  std::optional<EgressFrame> carry(Node& from, Node& to) {
    EgressFrame frame;
    if (!from.device.poll_frame(now, frame)) return std::nullopt;
    const std::vector<u8> bytes = on_the_wire(frame);
    IngressFrame arriving = received(frame, bytes);
    if (mark) arriving.traffic_class = traffic_class_of(0, ECN::kCE);
    to.device.on_frame(arriving, now);
    return frame;
  }
  // A's peer tells it of congestion.
  void notify(const Ends& ends) {
    mark = true;
    write(ends.a, 8);
    while (from_a()) continue;
    mark = false;
    while (from_b()) continue;
  }
  // Waits until a may send again; how long it was.
  Duration wait(Node& node) {
    EXPECT_FALSE(from_a()) << "it need not wait";
    const Time begin = now;
    now = node.device.next_send();
    return now - begin;
  }

  std::optional<Node> a, b;
  Time now = kStart;
  SGE sge;
  bool mark = false;
};

TEST_F(PacingTest, EachPacketWaitsForTheOneBeforeIt) {
  const Ends ends = connect();
  write(ends.a, 3 * kMTU);
  ASSERT_TRUE(from_a());
  EXPECT_EQ(wait(*a), ns(kMTU + kOverhead + 16));  // RETH
  ASSERT_TRUE(from_a());
  EXPECT_EQ(wait(*a), ns(kMTU + kOverhead));
  ASSERT_TRUE(from_a());
  EXPECT_EQ(wait(*a), ns(kMTU + kOverhead));
  EXPECT_FALSE(from_a());  // nothing is left
  EXPECT_EQ(a->device.next_send(), Time::never());
  write(ends.a, 8);  // and the next waits no more
  EXPECT_TRUE(from_a());
}

TEST_F(PacingTest, ACNPMakesTheWaitsLonger) {
  const Ends ends = connect();
  notify(ends);
  EXPECT_EQ(a->device.counters().rp_cnp_handled, 1u);
  std::optional<CongestionControl> control = a->device.congestion_of(ends.a);
  ASSERT_TRUE(control.has_value());
  EXPECT_EQ(control->rate(now), gbps(4));
  now = now + us(10);
  write(ends.a, 2 * kMTU);
  ASSERT_TRUE(from_a());
  EXPECT_EQ(wait(*a), ns(2 * (kMTU + kOverhead + 16)));
  now = now + ms(1);  // the rate has risen again
  ASSERT_TRUE(from_a());
  write(ends.a, 8);
  EXPECT_EQ(wait(*a), Rate::from_bps(6'000'000'000).time_of(kMTU + kOverhead));
}

TEST_F(PacingTest, TheBECNOfAPacketIsHeardAsACNPIs) {
  const Ends ends = connect();
  write(ends.a, 8);
  ASSERT_TRUE(from_a());
  EgressFrame ack;
  ASSERT_TRUE(b->device.poll_frame(now, ack));
  ack.headers[4] |= 0x40;
  const std::vector<u8> bytes = on_the_wire(ack);
  a->device.on_frame(received(ack, bytes), now);
  std::optional<CongestionControl> control = a->device.congestion_of(ends.a);
  EXPECT_EQ(control->rate(now), gbps(4));
}

TEST_F(PacingTest, AcknowledgementsDoNotWait) {
  const Ends ends = connect();
  write(ends.a, 8 * kMTU);
  ASSERT_TRUE(from_a());
  EXPECT_FALSE(from_a());
  // The peer's requests come in the meantime.
  for (int i = 0; i < 3; ++i) {
    SGE from = b->sge(0, 8);
    SendWR wr;
    wr.op = SendOp::kRDMAWrite;
    wr.sg_list = {&from, 1};
    wr.remote_address = a->address();
    wr.r_key = a->keys.r_key;
    ASSERT_EQ(b->device.post_send(ends.b, wr, now), PostError::kOk);
    ASSERT_TRUE(from_b());
    const std::optional<EgressFrame> ack = from_a();
    ASSERT_TRUE(ack);
    EXPECT_EQ(ack->payload.size_bytes, 0u);
    EXPECT_FALSE(from_a());
    now = now + ns(200);
  }
}

TEST_F(PacingTest, READResponsesArePacedByTheRateOfTheirSender) {
  const Ends ends = connect();
  read(ends.a, 3 * kMTU);
  ASSERT_TRUE(from_a());
  ASSERT_TRUE(from_b());
  EXPECT_FALSE(from_b());
  EXPECT_EQ(b->device.next_send() - now, ns(kMTU + kOverhead + 4));  // AETH
  now = b->device.next_send();
  EXPECT_TRUE(from_b());
  EXPECT_FALSE(from_b());
}

TEST_F(PacingTest, QPsWaitEachForItself) {
  const Ends first = connect(), second = connect(QPType::kUC);
  write(first.a, 2 * kMTU);
  write(second.a, 2 * kMTU);
  const std::optional<EgressFrame> one = from_a(), two = from_a();
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->source_qp, a->number(first.a));
  EXPECT_EQ(two->source_qp, a->number(second.a));
  (void)wait(*a);
  EXPECT_EQ(from_a()->source_qp, a->number(first.a));
  EXPECT_EQ(from_a()->source_qp, a->number(second.a));
}

TEST_F(PacingTest, DatagramsAreNotPaced) {
  QueuePair* const qp = a->create(QPType::kUD);
  a->bring_up(qp, kGIDB, QPN{});
  EXPECT_FALSE(a->device.congestion_of(qp).has_value());
}

TEST_F(PacingTest, AResetQPStartsAtLineRateAndWaitsForNothing) {
  const Ends ends = connect();
  notify(ends);
  now = now + us(10);
  write(ends.a, 4 * kMTU);
  ASSERT_TRUE(from_a());
  ASSERT_EQ(a->device.modify_qp(ends.a, test::to_state(QPState::kReset), now), Status::kOk);
  EXPECT_EQ(a->device.next_send(), Time::never());
  std::optional<CongestionControl> control = a->device.congestion_of(ends.a);
  EXPECT_EQ(control->rate(now), gbps(8));
  ASSERT_EQ(a->device.destroy_qp(ends.a), Status::kOk);
}

TEST_F(PacingTest, ADestroyedQPIsHeldNoMore) {
  const Ends ends = connect();
  write(ends.a, 4 * kMTU);
  ASSERT_TRUE(from_a());
  EXPECT_NE(a->device.next_send(), Time::never());
  ASSERT_EQ(a->device.destroy_qp(ends.a), Status::kOk);
  EXPECT_EQ(a->device.next_send(), Time::never());
  now = now + ms(1);
  EXPECT_FALSE(from_a());
}

struct PacingConfigTest : PacingTest {
  void with(const PacingConfig& pacing) {
    DeviceConfig config = paced(kGIDA, QPN{0x100});
    config.pacing = pacing;
    start(config, paced(kGIDB, QPN{0x200}));
  }
};

TEST_F(PacingConfigTest, CountsPayloadAloneInWholeNanoseconds) {
  with({.counted = PacingConfig::Counted::kPayload,
        .overhead_bytes = 48,
        .clock = TransmissionClock::kNanoseconds});
  const Ends ends = connect();
  write(ends.a, 3 * kMTU);
  ASSERT_TRUE(from_a());
  EXPECT_EQ(wait(*a), ns(1071));  // 1.072e-6 s, which as a double is less
}

// HPCC: what has arrived since the packet went moves the wait after it, either way.
struct MovedWaitTest : PacingTest {
  MovedWaitTest() {
    DeviceConfig config = paced(kGIDA, QPN{0x100});
    config.congestion.algorithm = HPCCParameters{.line_rate = gbps(8),
                                                 .min_rate = mbps(8),
                                                 .base_rtt = us(10),
                                                 .max_stage = 0,
                                                 .additive_bytes = 0};
    start(config, paced(kGIDB, QPN{0x200}));
    ends = connect();
    tell(0);  // the first tells nothing
    now = now + us(100);
    write(ends.a, 8);  // so that an acknowledgement is under way while the next wait
    EXPECT_TRUE(from_a());
    now = now + us(100);
    write(ends.a, 3 * kMTU);
    EXPECT_TRUE(from_a());
  }
  // Acknowledges what b has got, by way of a link that has sent `length` bytes in 10 us.
  void acknowledge(u64 length) {
    path.count = 1;
    path.hops[0] = {.rate = gbps(8),
                    .at = path.hops[0].at + us(10),
                    .sent_bytes = path.hops[0].sent_bytes + length};
    EgressFrame frame;
    ASSERT_TRUE(b->device.poll_frame(now, frame));
    const std::vector<u8> bytes = on_the_wire(frame);
    IngressFrame arriving = received(frame, bytes);
    arriving.path = &path;
    a->device.on_frame(arriving, now);
  }
  void tell(u64 bytes) {
    write(ends.a, 8);
    EXPECT_TRUE(from_a());
    acknowledge(bytes);
  }
  static constexpr u32 kFirst = kMTU + kOverhead + 16;  // bytes, with RETH
  Ends ends{};
  PathTelemetry path;
};

TEST_F(MovedWaitTest, ToLater) {
  const Time sent = now;
  now = now + ns(100);
  acknowledge(20'000);  // twice what the link can: U is 2
  const Rate rate = Rate::from_bps(static_cast<u64>(8e9 / (2 / 0.95)));
  const Time next = sent + rate.time_of(kFirst);
  now = sent + ns(kFirst);
  EXPECT_FALSE(from_a());
  EXPECT_EQ(a->device.next_send(), next);
  now = next - ns(1);
  EXPECT_FALSE(from_a());
  now = next;
  EXPECT_TRUE(from_a());
}

TEST_F(MovedWaitTest, ToEarlier) {
  acknowledge(20'000);
  now = now + us(100);
  const Time sent = now;
  ASSERT_TRUE(from_a());
  now = now + ns(100);
  acknowledge(4'750);  // half of what is aimed at
  const Time next = sent + Rate::from_bps(7'600'000'000).time_of(kMTU + kOverhead);
  now = next - ns(1);
  EXPECT_FALSE(from_a());
  now = next + ns(1);
  EXPECT_TRUE(from_a());
}

TEST_F(PacingConfigTest, AFastEnoughRateIsNoRate) {
  with({.unpaced_from = gbps(7)});
  const Ends ends = connect();
  write(ends.a, 3 * kMTU);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(from_a());
  EXPECT_EQ(a->device.next_send(), Time::never());
  notify(ends);
  write(ends.a, 2 * kMTU);
  ASSERT_TRUE(from_a());
  EXPECT_GT(wait(*a), us(2));
  now = now + sec(1);  // recovered
  write(ends.a, 3 * kMTU);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(from_a()) << i;
  EXPECT_EQ(a->device.next_send(), Time::never());
}

TEST_F(PacingConfigTest, BurstsKeepTheRateOfACoarseClock) {
  with({.burst = us(100)});
  const Ends ends = connect();
  u64 bytes = 0;
  const Time begin = now;
  for (int i = 0; i < 8; ++i) write(ends.a, 60 * kMTU);
  for (int i = 0; i < 2000; ++i) {
    while (const std::optional<EgressFrame> frame = from_a())
      bytes += frame->transport_size() + 4 + 66;
    while (from_b()) continue;
    while (a->completion()) write(ends.a, 60 * kMTU);
    now = now + us(7);
  }
  EXPECT_NEAR(static_cast<double>(bytes) * 8 / (now - begin).seconds(), 8e9, 80e6);
}

TEST_F(PacingConfigTest, BurstsAreBounded) {
  with({.burst = us(10)});
  const Ends ends = connect();
  write(ends.a, 8);
  ASSERT_TRUE(from_a());
  while (from_b()) continue;
  now = now + sec(1);  // idleness earns nothing beyond the burst
  write(ends.a, 60 * kMTU);
  u32 at_once = 0;
  while (from_a()) ++at_once;
  EXPECT_EQ(at_once, 10u);
  EXPECT_GT(a->device.next_send() - now, us(5));
}

struct WindowTest : PacingTest {
  void with(const CongestionParameters& congestion) {
    DeviceConfig config = config_at(kGIDA, QPN{0x100});
    config.congestion = congestion;
    config.pacing.unpaced_from = gbps(8);
    start(config, config_at(kGIDB, QPN{0x200}));
  }
  u32 burst() {
    u32 frames = 0;
    while (from_a()) ++frames;
    return frames;
  }
};

TEST_F(WindowTest, NoMoreThanTheWindowIsInFlight) {
  with({.algorithm = ConstantRateParameters{.line_rate = gbps(8)},
        .window = {.kind = WindowParameters::Kind::kFixed, .bytes = 4 * kMTU}});
  const Ends ends = connect();
  write(ends.a, 10 * kMTU);
  EXPECT_EQ(burst(), 4u);
  ASSERT_TRUE(from_b());  // one ACK for all of them
  EXPECT_EQ(burst(), 4u);
  ASSERT_TRUE(from_b());
  EXPECT_EQ(burst(), 2u);
}

TEST_F(WindowTest, RoundTripsAreHeard) {
  with({.algorithm = SwiftParameters{.line_rate = gbps(8),
                                     .packet_bytes = kMTU,
                                     .base_target = us(20),
                                     .flow_scaling_range = ns(0),
                                     .max_window = 8}});
  const Ends ends = connect();
  write(ends.a, 60 * kMTU);
  EXPECT_EQ(burst(), 8u);
  now = now + us(100);  // far beyond the target
  ASSERT_TRUE(from_b());
  EXPECT_EQ(burst(), 4u);
  now = now + us(100);
  ASSERT_TRUE(from_b());
  EXPECT_EQ(burst(), 2u);
  now = now + us(100);
  ASSERT_TRUE(from_b());
  EXPECT_EQ(burst(), 1u);
}

TEST_F(WindowTest, TelemetryComesWithTheAcknowledgement) {
  HPCCParameters hpcc{.line_rate = gbps(8), .min_rate = mbps(8), .base_rtt = us(10)};
  with({.algorithm = hpcc});
  const Ends ends = connect();
  PathTelemetry path;
  path.count = 1;
  path.hops[0] = {.rate = gbps(8), .at = now};
  for (int i = 0; i < 4; ++i) {
    write(ends.a, 8);
    ASSERT_TRUE(from_a());
    EgressFrame ack;
    ASSERT_TRUE(b->device.poll_frame(now, ack));
    const std::vector<u8> bytes = on_the_wire(ack);
    IngressFrame arriving = received(ack, bytes);
    now = now + us(20);
    path.hops[0].at = now;
    path.hops[0].queued_bytes = 100'000;  // ten times what the base round trip holds
    arriving.path = &path;
    a->device.on_frame(arriving, now);
  }
  std::optional<CongestionControl> control = a->device.congestion_of(ends.a);
  EXPECT_LT(control->rate(now), gbps(1));
}

// With decreases at the ends of periods the rate is still the line's when the next packet goes.
TEST(PacerTest, OneCNPIsEnoughThoughTheRateFallsLater) {
  EgressScheduler scheduler{{}};
  scheduler.reserve(1);
  const PacingConfig config{.unpaced_from = gbps(100)};
  Pacer pacer(config, scheduler);
  const CongestionParameters parameters{
      .algorithm = DCQCNParameters{.line_rate = gbps(100),
                                   .decrease = DCQCNParameters::Decrease::kPeriodic,
                                   .decrease_interval = us(4)}};
  QueuePair qp{{}, {}};
  pacer.begin(qp, parameters);
  EXPECT_FALSE(qp.paced);
  pacer.on_cnp(qp, kStart);
  pacer.on_sent(qp, {.bytes = 1000, .payload_bytes = 1000}, kStart + ns(100));
  EXPECT_EQ(scheduler.next_release(), Time::never());
  EXPECT_TRUE(qp.paced);
  pacer.on_sent(qp, {.bytes = 1000, .payload_bytes = 1000}, kStart + us(5));
  EXPECT_NE(scheduler.next_release(), Time::never());
}

TEST(EgressOrderTest, AcknowledgementsFirstIfAsked) {
  DeviceConfig config = config_at(kGIDA, QPN{0x100});
  config.egress = {.run_packets = 1, .acknowledgements = AcknowledgementOrder::kFirst};
  Node a(config), b(config_at(kGIDB, QPN{0x200}));
  QueuePair *sender = nullptr, *receiver = nullptr, *peer = nullptr;
  for (QueuePair** qp : {&sender, &receiver}) {
    *qp = a.create(QPType::kRC);
    peer = b.create(QPType::kRC);
    a.bring_up(*qp, kGIDB, b.number(peer));
    b.bring_up(peer, kGIDA, a.number(*qp));
  }
  const SGE sge = a.sge(0, 4 * kMTU);
  SendWR wr;
  wr.op = SendOp::kRDMAWrite;
  wr.sg_list = {&sge, 1};
  wr.remote_address = b.address();
  wr.r_key = b.keys.r_key;
  ASSERT_EQ(a.device.post_send(sender, wr, kStart), PostError::kOk);
  const SGE from = b.sge(0, 8);
  wr.sg_list = {&from, 1};
  wr.remote_address = a.address();
  wr.r_key = a.keys.r_key;
  ASSERT_EQ(b.device.post_send(peer, wr, kStart), PostError::kOk);
  EgressFrame frame;
  ASSERT_TRUE(a.device.poll_frame(kStart, frame));
  EXPECT_EQ(frame.source_qp, a.number(sender));
  EgressFrame request;
  ASSERT_TRUE(b.device.poll_frame(kStart, request));
  const std::vector<u8> bytes = on_the_wire(request);
  a.device.on_frame(received(request, bytes), kStart);
  ASSERT_TRUE(a.device.poll_frame(kStart, frame));
  EXPECT_EQ(frame.source_qp, a.number(receiver));  // before the three that wait
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(a.device.poll_frame(kStart, frame));
    EXPECT_EQ(frame.source_qp, a.number(sender));
  }
  EXPECT_FALSE(a.device.poll_frame(kStart, frame));
}

}  // namespace
}  // namespace verbena
