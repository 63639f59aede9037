#include "fabric/link.h"

#include <gtest/gtest.h>

namespace verbena::fabric {
namespace {

TEST(TransmissionTime, PicosecondsAreExact) {
  EXPECT_EQ(transmission_time(gbps(800), 1048, Clock::kPicoseconds), ps(10'480));
  EXPECT_EQ(transmission_time(gbps(100), 1048, Clock::kPicoseconds), ps(83'840));
}

// As measured in ns-3: a packet of 1000 bytes at 100 Gb/s takes 79 ns, not 80.
TEST(TransmissionTime, NanosecondsAreCutOffTwice) {
  EXPECT_EQ(transmission_time(gbps(100), 1048, Clock::kNanoseconds), ns(83));
  EXPECT_EQ(transmission_time(gbps(400), 1048, Clock::kNanoseconds), ns(20));
  EXPECT_EQ(transmission_time(gbps(100), 1000, Clock::kNanoseconds), ns(79));
  EXPECT_EQ(transmission_time(gbps(100), 625, Clock::kNanoseconds), ns(49));
  EXPECT_EQ(transmission_time(gbps(100), 60, Clock::kNanoseconds), ns(4));
  EXPECT_EQ(transmission_time(gbps(400), 43, Clock::kNanoseconds), ns(0));
}

TEST(NS3Duration, SecondsInADoubleAreCutOff) {
  EXPECT_EQ(ns3_duration(2.0), ns(2'000'000'000));
  EXPECT_EQ(ns3_duration(2.0001), ns(2'000'100'000));
  EXPECT_EQ(ns3_duration(2.0002), ns(2'000'199'999));
}

}  // namespace
}  // namespace verbena::fabric
