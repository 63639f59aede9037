#include "congestion/tcp/window_control.h"

#include <gtest/gtest.h>

#include <cmath>

namespace verbena::tcp {
namespace {

constexpr u32 kMSS = 1000;

WindowState avoiding(u64 segments) {
  return {.mss = kMSS, .window = segments * kMSS, .threshold = segments * kMSS};
}

TEST(Reno, GrowsByASegmentForAWindow) {
  Reno reno(avoiding(20));
  for (u32 i = 0; i < 20; ++i) reno.on_acknowledged(kMSS, Time());
  EXPECT_EQ(reno.state().window, 21u * kMSS);
  for (u32 i = 0; i < 21; ++i) reno.on_acknowledged(kMSS, Time());
  EXPECT_EQ(reno.state().window, 22u * kMSS);
}

TEST(Reno, HalvesAndStartsAgain) {
  Reno reno(avoiding(20));
  reno.on_congestion(20 * kMSS, Time());
  EXPECT_EQ(reno.state().window, 10u * kMSS);
  reno.on_timeout(10 * kMSS, Time());
  EXPECT_EQ(reno.state().window, u64{kMSS});
  EXPECT_EQ(reno.state().threshold, 5u * kMSS);
  reno.on_congestion(kMSS, Time());
  EXPECT_EQ(reno.state().window, 2u * kMSS);  // RFC 5681, equation 4
}

TEST(Reno, SlowStartCountsTwoSegmentsAtMost) {
  Reno reno({.mss = kMSS, .window = 10 * kMSS});
  reno.on_acknowledged(8 * kMSS, Time());
  EXPECT_EQ(reno.state().window, 12u * kMSS);
}

// The window after a loss, at each tenth of K, against the formula of RFC 9438, 4.2, with round
// trips that are short compared with K.
TEST(CUBIC, FollowsItsFunction) {
  constexpr double kMax = 1000;
  CUBIC cubic(avoiding(static_cast<u64>(kMax)));
  cubic.on_congestion(static_cast<u64>(kMax) * kMSS, Time());
  EXPECT_EQ(cubic.state().window, 700u * kMSS);
  const double k = std::cbrt(kMax * (1 - CUBIC::kBeta) / CUBIC::kC);  // 9.09 s
  const Duration round_trip = ms(100);
  Time now;
  while ((now - Time()).seconds() < 1.8 * k) {
    cubic.on_acknowledged(cubic.state().window, round_trip, now);  // a window in a round trip
    now = now + round_trip;
    const double t = (now - Time()).seconds() - k;
    const double formula = CUBIC::kC * t * t * t + kMax;
    EXPECT_NEAR(static_cast<double>(cubic.state().window) / kMSS / formula, 1, 0.015) << t;
  }
}

// 4.3: with short round trips it is as fast as a Reno of the same loss.
TEST(CUBIC, IsNeverSlowerThanReno) {
  CUBIC cubic(avoiding(20));
  cubic.on_congestion(20 * kMSS, Time());
  EXPECT_EQ(cubic.state().window, 14u * kMSS);
  Time now;
  const Duration round_trip = us(100);
  for (u32 round = 0; round < 20; ++round, now = now + round_trip)
    cubic.on_acknowledged(cubic.state().window, round_trip, now);
  const double alpha = 3 * (1 - CUBIC::kBeta) / (1 + CUBIC::kBeta);  // 0.529 segments each
  EXPECT_NEAR(static_cast<double>(cubic.state().window) / kMSS, 14 + 6 + (20 - 6 / alpha), 1.0);
}

TEST(CUBIC, GivesUpMoreWhereTheWindowShrinks) {
  CUBIC cubic(avoiding(100));
  cubic.on_congestion(100 * kMSS, Time());
  cubic.on_congestion(70 * kMSS, Time());
  EXPECT_EQ(cubic.state().window, 49u * kMSS);
  // The plateau is at 0.85 of the 70: 59.5. So it gets there K after.
  cubic.on_acknowledged(kMSS, us(1), Time());
  const double k = std::cbrt((59.5 - 49) / CUBIC::kC);
  EXPECT_NEAR(cubic.at(k), 59.5, 0.1);
}

// alpha approaches a constant share of marks: after n windows by 1 - (1 - g)^n. RFC 8257, 3.3.
TEST(DCTCP, AlphaBecomesTheShareOfMarks) {
  for (const double share : {0.0, 0.1, 0.5, 1.0}) {
    DCTCP dctcp(avoiding(100));
    u64 sent = 0;
    double alpha = 1;
    for (u32 window = 0; window < 100; ++window) {
      for (u32 i = 0; i < 10; ++i) {
        const u64 marked = static_cast<u64>(share * kMSS);
        dctcp.on_acknowledged({.bytes = kMSS,
                               .marked_bytes = marked,
                               .up_to = sent + (i + 1) * kMSS,
                               .sent = sent + 10 * kMSS},
                              Time());
      }
      sent += 10 * kMSS;
      if (window != 0) alpha += DCTCP::kG * (share - alpha);
    }
    EXPECT_NEAR(dctcp.alpha(), share, 0.003) << share;
    EXPECT_NEAR(dctcp.alpha(), alpha, 0.01) << share;
  }
}

TEST(DCTCP, GivesUpHalfOfAlphaOnceInAWindow) {
  DCTCP dctcp(avoiding(100));
  const DCTCP::Acknowledgement marked{
      .bytes = kMSS, .marked_bytes = kMSS, .up_to = 1000, .sent = 100'000, .grows = true};
  dctcp.on_acknowledged(marked, Time());
  EXPECT_TRUE(dctcp.take_reduction());
  EXPECT_EQ(dctcp.state().window, 50u * kMSS);  // alpha is 1 at first
  DCTCP::Acknowledgement more = marked;
  more.up_to = 50'000;
  dctcp.on_acknowledged(more, Time());
  EXPECT_FALSE(dctcp.take_reduction());
  EXPECT_EQ(dctcp.state().window, 50u * kMSS);
}

}  // namespace
}  // namespace verbena::tcp
