#include "fabric/spreading.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

namespace verbena::fabric {
namespace {

using Kind = SpreadingConfig::Kind;

constexpr std::array<u16, 4> kWays = {3, 5, 8, 9};

struct Chooser {
  explicit Chooser(Kind kind, u64 seed = 1)
      : spreading({.kind = kind, .flowlet_gap = us(10), .flowlets = 64}, 7, seed) {}
  u16 choose(u16 source_port, u8 qpn = 1) {
    frame.headers[5] = frame.headers[6] = 0;
    frame.headers[7] = qpn;
    return spreading.choose(kWays, {.source_address = 1, .source_port = source_port}, frame, now,
                            [this](u16 port) { return queued[port]; });
  }
  Spreading spreading;
  Frame frame;
  Time now;
  std::map<u16, u64> queued;
};

TEST(Spreading, AFlowKeepsItsWay) {
  Chooser c(Kind::kFlowHash);
  std::set<u16> used;
  for (u16 port = 0; port < 50; ++port) {
    const u16 way = c.choose(port, 1);
    EXPECT_EQ(c.choose(port, 2), way);
    used.insert(way);
  }
  EXPECT_EQ(used.size(), 4u);
}

TEST(Spreading, QPsOfOnePortSpreadIfAsked) {
  Chooser c(Kind::kFlowAndQPHash);
  std::set<u16> used;
  for (u8 qpn = 0; qpn < 50; ++qpn) {
    const u16 way = c.choose(1, qpn);
    EXPECT_EQ(c.choose(1, qpn), way);
    used.insert(way);
  }
  EXPECT_EQ(used.size(), 4u);
}

TEST(Spreading, SprayedEvenlyAndBySeed) {
  Chooser a(Kind::kPacketSpray), b(Kind::kPacketSpray), c(Kind::kPacketSpray, 2);
  std::map<u16, u32> count;
  u32 other = 0;
  for (int i = 0; i < 4000; ++i) {
    const u16 way = a.choose(1);
    ++count[way];
    EXPECT_EQ(b.choose(1), way);
    other += c.choose(1) != way ? 1 : 0;
  }
  for (const u16 way : kWays) EXPECT_NEAR(count[way], 1000, 120);
  EXPECT_GT(other, 2500u);
}

TEST(Spreading, AFlowletChangesOnlyAfterSilence) {
  Chooser c(Kind::kFlowlet);
  const u16 first = c.choose(1);
  for (int i = 0; i < 100; ++i) {
    c.now = c.now + us(9);
    EXPECT_EQ(c.choose(1), first);
  }
  std::set<u16> used;
  for (int i = 0; i < 100; ++i) {
    c.now = c.now + us(11);
    used.insert(c.choose(1));
  }
  EXPECT_EQ(used.size(), 4u);
}

TEST(Spreading, TheLeastLoadedAndTheHashAmongEquals) {
  Chooser c(Kind::kLeastLoaded), hash(Kind::kFlowHash);
  EXPECT_EQ(c.choose(1), hash.choose(1));
  for (const u16 way : kWays) c.queued[way] = 1000;
  c.queued[8] = 999;
  EXPECT_EQ(c.choose(1), 8);
}

}  // namespace
}  // namespace verbena::fabric
