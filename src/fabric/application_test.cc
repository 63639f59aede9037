#include "fabric/application.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "fabric/network.h"

namespace verbena::fabric {
namespace {

// PingPong: two hosts; each message that arrives at one is sent back on the other connection with
// the next word.
class PingPong final : public Application {
 public:
  explicit PingPong(u32 last) : last_(last), topology_(line()), network_(topology_, {}) {
    network_.set_application(this);
    EXPECT_TRUE(network_.connect({.source = 0, .destination = 1}));
    EXPECT_TRUE(network_.connect({.source = 1, .destination = 0}));
  }
  void on_arrival(u32 connection, u32 word, Time now) override {
    arrivals.push_back(now);
    words.push_back(word);
    if (word < last_) network_.send(1 - connection, 1000, word + 1);
  }
  void on_sent(u32, Time now) override { sent.push_back(now); }
  void on_alarm(u32 word, Time) override { network_.send(0, 1000, word); }

  Network& network() { return network_; }
  std::vector<Time> arrivals, sent;
  std::vector<u32> words;

 private:
  static Topology line() {
    Topology topology;
    const NodeIndex a = topology.add_host(), b = topology.add_host();
    topology.join(a, b, {.rate = gbps(100), .delay = us(1)});
    return topology;
  }
  u32 last_;
  Topology topology_;
  Network network_;
};

// BTH, RETH, ImmDt, ICRC and 46 bytes below: 82 with each message, 66 of each acknowledgement.
TEST(Application, AMessageArrivesBeforeItsSenderKnows) {
  PingPong hosts(7);
  hosts.network().set_alarm(0, Time::from_ns(500), 7);
  EXPECT_FALSE(hosts.network().run(Time::from_ns(1'000'000'000)));  // with ACK timers
  ASSERT_EQ(hosts.arrivals.size(), 1u);
  ASSERT_EQ(hosts.sent.size(), 1u);
  EXPECT_EQ(hosts.words[0], 7u);
  EXPECT_EQ(hosts.arrivals[0].ps(), 500'000 + 1082 * 80 + 1'000'000);
  EXPECT_EQ(hosts.sent[0].ps(), hosts.arrivals[0].ps() + 66 * 80 + 1'000'000);
}

TEST(Application, MessagesAnswerMessages) {
  PingPong hosts(100);
  hosts.network().set_alarm(0, Time(), 1);
  EXPECT_FALSE(hosts.network().run(Time::from_ns(1'000'000'000)));  // with ACK timers
  ASSERT_EQ(hosts.words.size(), 100u);
  for (u32 i = 0; i < 100; ++i) EXPECT_EQ(hosts.words[i], i + 1);
  EXPECT_EQ(hosts.sent.size(), 100u);
  EXPECT_EQ(hosts.network().frames_in_flight(), 0u);
}

// A connection takes as many as its depth, then as many as have been acknowledged, for ever.
TEST(Application, ConnectionsAreReused) {
  PingPong hosts(0);
  for (u32 round = 1; round <= 5; ++round) {
    for (u32 i = 0; i < ConnectionConfig{}.depth; ++i) hosts.network().send(0, 5000, 0);
    EXPECT_FALSE(hosts.network().run(Time::never()));
    EXPECT_EQ(hosts.sent.size(), round * ConnectionConfig{}.depth);
    EXPECT_EQ(hosts.arrivals.size(), hosts.sent.size());
  }
}

// Hosts in a row tell each other when they have heard something.
class Whisper final : public Application {
 public:
  static constexpr u32 kHosts = 6;
  explicit Whisper(u32 threads) : topology_(star()), network_(topology_, config(threads)) {
    network_.set_application(this);
  }
  void on_arrival(u32, u32, Time) override {}
  void on_sent(u32, Time) override {}
  void on_alarm(u32 word, Time now) override {
    const u32 host = word % kHosts;
    heard[host].emplace_back(word, now);
    if (word / kHosts == 20) return;
    const u32 next = (host + 1) % kHosts, round = word / kHosts + 1;
    network_.signal(host, next, now + kNotice, round * kHosts + next);
  }
  void run() {
    for (u32 host = 0; host < kHosts; ++host)
      network_.set_alarm(host, Time::from_ns(100 * host), host);
    EXPECT_FALSE(network_.run(Time::never()));
  }
  std::array<std::vector<std::pair<u32, Time>>, kHosts> heard;

 private:
  static constexpr Duration kNotice = ns(300);
  static NetworkConfig config(u32 threads) {
    NetworkConfig config;
    config.shortest_signal = kNotice;
    config.threads = threads;
    return config;
  }
  static Topology star() {
    Topology topology;
    std::vector<NodeIndex> hosts;
    for (u32 i = 0; i < kHosts; ++i) hosts.push_back(topology.add_host());
    const NodeIndex hub = topology.add_switch();
    for (const NodeIndex host : hosts)
      topology.join(host, hub, {.rate = gbps(100), .delay = us(1)});
    return topology;
  }
  Topology topology_;
  Network network_;
};

TEST(Application, SignalsComeWhenTheyAreDue) {
  Whisper one(1), three(3);
  one.run();
  three.run();
  EXPECT_EQ(one.heard, three.heard);
  for (u32 host = 0; host < Whisper::kHosts; ++host) {
    ASSERT_EQ(one.heard[host].size(), 21u);
    for (u32 round = 0; round <= 20; ++round) {
      const u32 first = (host + Whisper::kHosts - round % Whisper::kHosts) % Whisper::kHosts;
      EXPECT_EQ(one.heard[host][round], std::pair(round * Whisper::kHosts + host,
                                                  Time::from_ns(100 * first) + ns(300) * round));
    }
  }
}

TEST(Application, NoWayIsSaid) {
  Topology topology;
  for (u32 i = 0; i < 2; ++i) topology.join(topology.add_host(), topology.add_host(), {});
  Network network(topology, {});
  EXPECT_TRUE(network.connect({.source = 0, .destination = 1}));
  EXPECT_FALSE(network.connect({.source = 0, .destination = 2}));
}

}  // namespace
}  // namespace verbena::fabric
