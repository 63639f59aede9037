#include "cli/nic_counters.h"

#include <gmock/gmock.h>

namespace verbena::cli {
namespace {

using testing::HasSubstr;

constexpr const char* kStatusOfTwo =
    R"({"socket": "/run/n.sock", "encryption": false, "functions": [
  {"name": "red", "address": "10.0.0.1", "programs": [{"pid": 7, "user": 1, "slot": 3}],
   "counters": {"sent_packets": 10, "sent_bytes": 4000, "refused_connections": 2,
                "sent_refused_source": 3},
   "sent_by_class": [{"class": 0, "packets": 9, "bytes": 3900},
                     {"class": 5, "packets": 1, "bytes": 100}]},
  {"name": "blue", "address": "10.0.0.2", "programs": [],
   "counters": {"sent_packets": 0, "sent_bytes": 0, "refused_connections": 0,
                "sent_refused_source": 0},
   "sent_by_class": [{"class": 0, "packets": 0, "bytes": 0},
                     {"class": 5, "packets": 0, "bytes": 0}]}
]})";

TEST(NICCountersTest, StatusIsRead) {
  const auto status = read_nic_status(kStatusOfTwo);
  ASSERT_TRUE(status.has_value());
  ASSERT_EQ(status->size(), 2u);
  EXPECT_EQ(status->front().programs, 1u);
  EXPECT_EQ(status->front().counter("sent_bytes"), 4000u);
  EXPECT_EQ(status->front().refused(), 5u);
}

TEST(NICCountersTest, WhatIsNoStatusIsRefused) {
  EXPECT_FALSE(read_nic_status(R"({"functions": [{"name": )").has_value());
  EXPECT_FALSE(read_nic_status(R"({"functions": [{"address": "x"}]})").has_value());
}

TEST(NICCountersTest, EachMetricNamesItsFunctionTogetherWithItsType) {
  const std::string metrics = nic_metrics(*read_nic_status(kStatusOfTwo));
  EXPECT_THAT(metrics,
              HasSubstr("verbena_nic_programs{function=\"red\",address=\"10.0.0.1\"} 1\n"));
  EXPECT_THAT(
      metrics,
      HasSubstr("# TYPE verbena_nic_sent_bytes_total counter\n"
                "verbena_nic_sent_bytes_total{function=\"red\",address=\"10.0.0.1\"} 4000\n"
                "verbena_nic_sent_bytes_total{function=\"blue\",address=\"10.0.0.2\"} 0\n"));
  EXPECT_THAT(metrics, HasSubstr("verbena_nic_class_sent_bytes_total{function=\"red\","
                                 "address=\"10.0.0.1\",class=\"5\"} 100\n"));
}

TEST(NICCountersTest, TheTableHasRates) {
  const NICStatus before = *read_nic_status(kStatusOfTwo);
  NICStatus now = before;
  now[0].counters[0].second += 2000;     // packets
  now[0].counters[1].second += 500'000;  // bytes
  now[0].counters[3].second += 40;
  const std::string table = nic_table(before, now, sec(2));
  EXPECT_THAT(table, testing::ContainsRegex("red +10.0.0.1 +1 +1000 +2.0 +0 +0.0 +20\n"));
  EXPECT_THAT(table, testing::ContainsRegex("blue +10.0.0.2 +0 +0 +0.0 +0 +0.0 +0\n"));
}

TEST(NICCountersTest, TheTableHasClassesOfAFunctionThatSendsInSeveral) {
  const NICStatus before = *read_nic_status(kStatusOfTwo);
  NICStatus now = before;
  now[0].classes[1] = {.traffic_class = 5, .sent_packets = 21, .sent_bytes = 100 + 250'000};
  now[1].classes[1] = {.traffic_class = 5, .sent_packets = 7, .sent_bytes = 700};
  const std::string table = nic_table(before, now, sec(1));
  EXPECT_THAT(table, testing::ContainsRegex("\n  class 5 +20 +2.0\nblue"));
  EXPECT_EQ(table.find("class"), table.rfind("class"));
}

// A NIC that was restarted counts from 0 again, and a new function has no time before.
TEST(NICCountersTest, RatesAreNeverNegative) {
  NICStatus before = *read_nic_status(kStatusOfTwo);
  NICStatus now = before;
  before[0].counters[0].second += 1'000'000;
  before.pop_back();
  const std::string table = nic_table(before, now, sec(1));
  EXPECT_THAT(table, testing::ContainsRegex("red +10.0.0.1 +1 +0 "));
  EXPECT_THAT(table, testing::ContainsRegex("blue +10.0.0.2 +0 +0 "));
}

}  // namespace
}  // namespace verbena::cli
