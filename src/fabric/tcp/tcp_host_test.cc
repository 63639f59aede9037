// Hosts that speak TCP or iWARP, on simulated links and switches.
#include "fabric/tcp/tcp_host.h"

#include <gtest/gtest.h>

#include "fabric/network.h"
#include "fabric/tcp/segment_codec.h"
#include "fabric/testing.h"
#include "wire/iwarp/framing.h"

namespace verbena::fabric {
namespace {

using test::star;

constexpr u64 kBytes = 20'000'000;

class Ends final : public Trace {
 public:
  void on_flow_finished(u32, Time now) override {
    ++finished;
    last = now;
  }
  void on_flow_failed(u32, Time) override { ++failed; }
  void on_pause_received(NodeIndex, u32, u32, u32, Time) override { ++pauses; }
  u32 finished = 0, failed = 0, pauses = 0;
  Time last;
};

NetworkConfig config_of(Technology technology) {
  NetworkConfig config;
  config.technology = technology;
  config.switches.pfc.enabled = false;
  config.tcp.tcp.rto_min = ms(2);
  if (technology == Technology::kIWARP) config.tcp.framing = TCPHostConfig::Framing::kIWARP;
  return config;
}

struct Outcome {
  Ends ends;
  Counters counters;
  Repairs repairs;
  u64 frames_left = 0;
};

// All hosts but the first send to it.
Outcome incast(const Topology& topology, const NetworkConfig& config, u64 bytes = kBytes) {
  Network network(topology, config);
  Outcome outcome;
  network.set_trace(&outcome.ends);
  for (NodeIndex host = 1; host + 1 < topology.nodes; ++host)
    EXPECT_TRUE(network.add_flow({.source = host, .destination = 0, .bytes = bytes}));
  EXPECT_FALSE(network.run(Time() + sec(100)));
  outcome.counters = network.counters();
  outcome.repairs = network.repairs();
  outcome.frames_left = network.frames_in_flight();
  return outcome;
}

TEST(SegmentCodec, GivesBackWhatWasPut) {
  tcp::Segment data{.sequence = (u64{1} << 40) + 5,
                    .bytes = 8948,
                    .push = true,
                    .cwr = true,
                    .ecn = ECN::kCE,
                    .word = 0x12345678};
  tcp::Segment acknowledgement{.acknowledgement = u64{1} << 33,
                               .window = u64{16} << 20,
                               .syn = true,
                               .ack = true,
                               .ece = true,
                               .duplicate = true,
                               .block_count = 2};
  acknowledgement.blocks[0] = {acknowledgement.acknowledgement + 1000,
                               acknowledgement.acknowledgement + (u64{48} << 20)};
  acknowledgement.blocks[1] = {acknowledgement.acknowledgement + (u64{63} << 20),
                               acknowledgement.acknowledgement + (u64{63} << 20) + 1};
  for (const tcp::Segment& segment : {data, acknowledgement}) {
    Frame frame;
    put_segment(segment, 0xabcdef, frame);
    const tcp::Segment again = segment_of(frame);
    EXPECT_EQ(end_of(frame), 0xabcdefu);
    EXPECT_EQ(again.sequence, segment.sequence);
    EXPECT_EQ(again.bytes, segment.bytes);
    EXPECT_EQ(again.acknowledgement, segment.acknowledgement);
    EXPECT_EQ(again.window, segment.window);
    EXPECT_EQ(again.word, segment.word);
    EXPECT_EQ(again.block_count, segment.block_count);
    EXPECT_EQ(again.blocks, segment.blocks);
    EXPECT_EQ(again.syn, segment.syn);
    EXPECT_EQ(again.push, segment.push);
    EXPECT_EQ(again.ece, segment.ece);
    EXPECT_EQ(again.cwr, segment.cwr);
    EXPECT_EQ(again.duplicate, segment.duplicate);
    EXPECT_EQ(again.ecn, segment.ecn);
  }
}

// Rate times payload over frame; for iWARP, the payload of an FPDU.
TEST(TCPHost, ALoneFlowHasTheGoodputOfItsFrames) {
  for (const Technology technology : {Technology::kTCP, Technology::kIWARP}) {
    const NetworkConfig config = config_of(technology);
    const Outcome outcome = incast(star(2), config, 10 * kBytes);
    const u32 mss = config.tcp.tcp.mss;
    const double payload =
        technology == Technology::kTCP ? mss : iwarp::longest_ulpdu(mss) - iwarp::kTaggedHeader;
    const double ideal = 10.0 * kBytes * 8 / 100e9 * config.tcp.longest_frame() / payload;
    EXPECT_NEAR((outcome.ends.last - Time()).seconds() / ideal, 1, 0.01);
    EXPECT_EQ(outcome.repairs.retransmissions, 0u);
    EXPECT_EQ(outcome.frames_left, 0u);
  }
}

class TCPHosts : public testing::TestWithParam<tcp::ControlKind> {};

TEST_P(TCPHosts, SurviveLossOnLinks) {
  for (const Technology technology : {Technology::kTCP, Technology::kIWARP})
    for (const double loss : {0.01, 0.1}) {
      NetworkConfig config = config_of(technology);
      config.tcp.tcp.control = GetParam();
      const Outcome outcome = incast(star(3, {.error_rate = loss}), config, 2'000'000);
      EXPECT_EQ(outcome.ends.finished, 2u);
      EXPECT_GT(outcome.counters.lost(), 0u);
      EXPECT_GT(outcome.repairs.retransmissions, 0u);
    }
}

TEST_P(TCPHosts, SurviveAnIncastThatOverflowsTheSwitch) {
  NetworkConfig config = config_of(Technology::kTCP);
  config.tcp.tcp.control = GetParam();
  config.tcp.tcp.ecn = GetParam() == tcp::ControlKind::kDCTCP;
  config.switches.buffer.size = 2u << 20;
  config.switch_port = [](const LinkConfig&) {
    return SwitchPortConfig{.marking = {.k_min = 100'000, .k_max = 100'000, .p_max = 1}};
  };
  const Outcome outcome = incast(star(17), config, 2'000'000);
  EXPECT_EQ(outcome.ends.finished, 16u);
  EXPECT_EQ(outcome.counters.pauses, 0u);
  if (GetParam() == tcp::ControlKind::kDCTCP) {
    EXPECT_GT(outcome.counters.marks, 0u);
    return;
  }
  EXPECT_GT(outcome.counters.drops, 0u);
  EXPECT_GT(outcome.repairs.retransmissions, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, TCPHosts,
                         testing::Values(tcp::ControlKind::kReno, tcp::ControlKind::kCUBIC,
                                         tcp::ControlKind::kDCTCP));

// With PFC and headroom nothing is lost, so that nothing is sent again.
TEST(TCPHost, OnLosslessEthernetNothingIsSentAgain) {
  NetworkConfig config = config_of(Technology::kTCP);
  config.switches.pfc.enabled = true;
  config.switches.buffer.size = 4u << 20;
  config.switch_port = [&config](const LinkConfig& link) {
    return SwitchPortConfig{
        .buffer = {.headroom = headroom_for(link.rate, link.delay, config.tcp.longest_frame())}};
  };
  const Outcome outcome = incast(star(9), config, 4'000'000);
  EXPECT_EQ(outcome.ends.finished, 8u);
  EXPECT_EQ(outcome.counters.drops, 0u);
  EXPECT_GT(outcome.ends.pauses, 0u);
  EXPECT_EQ(outcome.repairs.retransmissions, 0u);
}

// A program that reads at a fifth of the rate: the window closes, and nothing is lost. The flow is
// finished when the program has its last byte, however much the receive buffer holds.
TEST(TCPHost, ASlowProgramHoldsItsSenderBack) {
  for (const u32 buffer : {1u << 20, 16u << 20}) {
    NetworkConfig config = config_of(Technology::kTCP);
    config.tcp.tcp.receive_buffer = buffer;
    config.faults.slow_receivers.push_back({.node = 0, .receiver = {.drain = gbps(20)}});
    const Outcome outcome = incast(star(2), config);
    EXPECT_EQ(outcome.ends.finished, 1u);
    EXPECT_EQ(outcome.counters.drops, 0u);
    EXPECT_NEAR((outcome.ends.last - Time()).seconds() / (kBytes * 8 / 20e9), 1, 0.03) << buffer;
  }
}

TEST(TCPHost, IsTheSameWithAnyNumberOfThreads) {
  NetworkConfig config = config_of(Technology::kTCP);
  config.switches.buffer.size = 2u << 20;
  const Outcome one = incast(star(17), config, 1'000'000);
  config.threads = 3;
  const Outcome three = incast(star(17), config, 1'000'000);
  EXPECT_EQ(one.counters, three.counters);
  EXPECT_EQ(one.ends.last, three.ends.last);
  EXPECT_EQ(one.repairs.retransmissions, three.repairs.retransmissions);
}

TEST(TCPHost, AFlowThatNobodyAnswersIsGivenUp) {
  NetworkConfig config = config_of(Technology::kTCP);
  config.tcp.tcp.retries = 3;
  const Outcome outcome = incast(star(2, {.error_rate = 1}), config);
  EXPECT_EQ(outcome.ends.failed, 1u);
}

// --- messages

class Conversation final : public Application {
 public:
  void on_arrival(u32, u32 word, Time now) override {
    words.push_back(word);
    last = now;
  }
  void on_sent(u32, Time) override { ++sent; }
  void on_alarm(u32, Time) override {}
  std::vector<u32> words;
  u32 sent = 0;
  Time last;
};

TEST(TCPHost, MessagesArriveInOrderWhateverIsLost) {
  for (const Technology technology : {Technology::kTCP, Technology::kIWARP})
    for (const double loss : {0.0, 0.05}) {
      const Topology topology = star(2, {.error_rate = loss});
      Network network(topology, config_of(technology));
      Conversation conversation;
      network.set_application(&conversation);
      ASSERT_TRUE(network.connect({.source = 0, .destination = 1, .depth = 100}));
      std::vector<u32> words;
      for (u32 i = 0; i < 100; ++i) {
        words.push_back(1000 + i);
        network.send(0, i * 1000, words.back());
      }
      EXPECT_FALSE(network.run(Time() + sec(100)));
      EXPECT_EQ(conversation.words, words);
      EXPECT_EQ(conversation.sent, 100u);
    }
}

TEST(TCPHost, TheWayToTheNICTakesTime) {
  Time ends[2];
  for (const bool with : {false, true}) {
    NetworkConfig config = config_of(Technology::kTCP);
    if (with) {
      config.tcp.posting = us(3);
      config.tcp.completion = us(2);
    }
    const Topology topology = star(2);
    Network network(topology, config);
    Conversation conversation;
    network.set_application(&conversation);
    ASSERT_TRUE(network.connect({.source = 0, .destination = 1}));
    network.send(0, 1000, 7);
    EXPECT_FALSE(network.run(Time() + sec(100)));
    ends[with ? 1 : 0] = conversation.last;
  }
  EXPECT_EQ(ends[1] - ends[0], us(5));
}

}  // namespace
}  // namespace verbena::fabric
