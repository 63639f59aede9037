#include "fabric/results/link_use.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace verbena::fabric {
namespace {

using JSON = nlohmann::ordered_json;

Time at_us_of(i64 microseconds) { return Time() + us(microseconds); }

// Values of a direction at each point.
std::vector<i64> values_of(const JSON& data, const char* quantity, u32 direction) {
  std::vector<i64> values(data["points"].get<std::size_t>());
  for (const JSON& row : data[quantity]) {
    if (row[0] != direction) continue;
    for (std::size_t i = 1; i < row.size(); i += 2)
      for (std::size_t point = row[i]; point < values.size(); ++point) values[point] = row[i + 1];
  }
  return values;
}

TEST(LinkUse, AFewSamplesAreAPointEach) {
  LinkUse use({gbps(100), gbps(100)}, us(4), us(1));
  use.note_sent(1, at_us_of(2), us(1), 12'500);  // 100 Gbit/s for 1 us
  use.note_sent(1, at_us_of(3), us(1), 3'125);
  use.note_queue(0, at_us_of(1), 700);
  use.note_queue(0, at_us_of(3), 0);
  use.note_marks(0, at_us_of(4), 5);
  use.note_held(0, at_us_of(0), at_us_of(4), us(2));
  const JSON data = use.data();
  EXPECT_EQ(data["points"], 4);
  EXPECT_EQ(data["point_us"], 1.0);
  EXPECT_EQ(data["samples_per_point"], 1);
  EXPECT_EQ(values_of(data, "load", 1), (std::vector<i64>{0, 1000, 250, 0}));
  EXPECT_EQ(values_of(data, "queue", 0), (std::vector<i64>{0, 700, 700, 0}));
  EXPECT_EQ(values_of(data, "marks", 0), (std::vector<i64>{0, 0, 0, 5}));
  EXPECT_EQ(values_of(data, "paused", 0), (std::vector<i64>{500, 500, 500, 500}));
  EXPECT_TRUE(data["load"].size() == 1 && data["queue"].size() == 1);  // no row without a value
}

TEST(LinkUse, ManySamplesArePointsOfSeveralWithTheLongestQueue) {
  LinkUse use({gbps(100)}, us(2'400), us(1));
  use.note_queue(0, at_us_of(14), 9'000);
  use.note_queue(0, at_us_of(15), 100);
  use.note_queue(0, at_us_of(40), 0);
  const JSON data = use.data();
  EXPECT_EQ(data["points"], LinkUse::kMostPoints);
  EXPECT_EQ(data["samples_per_point"], 10);
  const std::vector<i64> queue = values_of(data, "queue", 0);
  EXPECT_EQ((std::vector<i64>(queue.begin(), queue.begin() + 5)),
            (std::vector<i64>{0, 9'000, 100, 100, 0}));
}

TEST(LinkUse, TheNumberOfValuesIsBounded) {
  constexpr u32 kDirections = 4'000;
  LinkUse use(std::vector<Rate>(kDirections, gbps(100)), us(240), us(1));
  for (u32 direction = 0; direction < kDirections; ++direction)
    for (i64 sample = 1; sample <= 240; ++sample)
      use.note_queue(direction, at_us_of(sample), static_cast<u64>(direction + sample % 2 + 1));
  const JSON data = use.data();
  std::size_t values = 0;
  for (const JSON& row : data["queue"]) values += row.size() - 1;
  EXPECT_LE(values, LinkUse::kMostValues);
  EXPECT_GE(data["points"].get<std::size_t>(), LinkUse::kFewestPoints);
  EXPECT_EQ(values_of(data, "queue", 7)[8], 9);  // the longest of its samples
}

TEST(LinkUse, AHugeNetworkHasFewPoints) {
  LinkUse use(std::vector<Rate>(400'000, gbps(100)), ms(10), us(1));
  EXPECT_EQ(use.data()["points"], LinkUse::kFewestPoints);
}

TEST(LinkUse, AnEmptyRunHasOnePoint) {
  LinkUse use({gbps(100)}, Duration(), Duration());
  const JSON data = use.data();
  EXPECT_EQ(data["points"], 1);
  EXPECT_TRUE(data["load"].empty());
}

}  // namespace
}  // namespace verbena::fabric
