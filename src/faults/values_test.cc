#include "faults/values.h"

#include <gtest/gtest.h>

namespace verbena::faults {
namespace {

TEST(FaultValuesTest, Probabilities) {
  EXPECT_EQ(parse_probability("1%"), 0.01);
  EXPECT_EQ(parse_probability("0.5%"), 0.005);
  EXPECT_EQ(parse_probability("0.25"), 0.25);
  EXPECT_EQ(parse_probability("100%"), 1.0);
  for (const char* bad : {"", "%", "101%", "1.5", "-1%", "x", "1%%", "1 %", "nan", "inf", "1e-3"})
    EXPECT_FALSE(parse_probability(bad)) << bad;
}

TEST(FaultValuesTest, Durations) {
  EXPECT_EQ(parse_duration("300ns"), ns(300));
  EXPECT_EQ(parse_duration("1.5ms"), us(1500));
  EXPECT_EQ(parse_duration("2s"), sec(2));
  EXPECT_EQ(parse_duration("0us"), Duration{});
  for (const char* bad : {"", "5", "us", "-1us", "1.2.3us", "1 us", "1h", "99999999999s"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(FaultValuesTest, Rates) {
  EXPECT_EQ(parse_rate("10Gbit"), 10'000'000'000);
  EXPECT_EQ(parse_rate("2.5gbit"), 2'500'000'000);
  EXPECT_EQ(parse_rate("800kbit"), 800'000);
  for (const char* bad : {"", "0Gbit", "10", "10GB", "Gbit"}) EXPECT_FALSE(parse_rate(bad)) << bad;
}

TEST(FaultValuesTest, Numbers) {
  EXPECT_EQ(parse_number("12"), 12u);
  EXPECT_EQ(parse_number("0x11"), 0x11u);
  EXPECT_EQ(parse_number("18446744073709551615"), ~u64{0});
  for (const char* bad : {"", "0x", "1x", "-1", "18446744073709551616"})
    EXPECT_FALSE(parse_number(bad)) << bad;
}

TEST(FaultValuesTest, Intervals) {
  const auto one = parse_interval("7");
  ASSERT_TRUE(one);
  EXPECT_TRUE(one->holds(7) && !one->holds(6) && !one->holds(8));
  const auto some = parse_interval("3-5");
  ASSERT_TRUE(some);
  EXPECT_TRUE(some->holds(3) && some->holds(5) && !some->holds(2) && !some->holds(6));
  const auto open = parse_interval("9-");
  ASSERT_TRUE(open);
  EXPECT_TRUE(open->holds(~u64{0}) && !open->holds(8));
  for (const char* bad : {"", "-", "-3", "5-3", "a-b", "1-2-3"})
    EXPECT_FALSE(parse_interval(bad)) << bad;
}

TEST(FaultValuesTest, Opcodes) {
  const auto writes = parse_opcodes("write");
  ASSERT_TRUE(writes);
  EXPECT_EQ(writes->count(), 6u * 3);  // RC, UC, XRC
  EXPECT_TRUE(writes->test(0x0a) && writes->test(0x2a) && writes->test(0xaa));
  EXPECT_FALSE(writes->test(0x04));
  const auto two = parse_opcodes("ack|read-response");
  ASSERT_TRUE(two);
  EXPECT_TRUE(two->test(0x11) && two->test(0x0d) && two->test(0x10));
  EXPECT_FALSE(two->test(0x0c));
  EXPECT_TRUE(parse_opcodes("cnp")->test(0x81));
  EXPECT_EQ(parse_opcodes("cnp")->count(), 1u);
  EXPECT_EQ(parse_opcodes("0x04")->count(), 1u);
  for (const char* bad : {"", "wrte", "write|", "256", "|"})
    EXPECT_FALSE(parse_opcodes(bad)) << bad;
}

}  // namespace
}  // namespace verbena::faults
