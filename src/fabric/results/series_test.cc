#include "fabric/results/series.h"

#include <gtest/gtest.h>

namespace verbena::fabric {
namespace {

TEST(SeriesSet, StoresChangesAndFillsBetween) {
  SeriesSet set(1);
  const u64 values[] = {0, 5, 5, 0, 7};
  for (u32 i = 0; i < 5; ++i) set.note(0, i, values[i]);
  EXPECT_EQ(set.points(), 3u);
  EXPECT_EQ(set.filled(0, 5), std::vector<u64>(std::begin(values), std::end(values)));
}

TEST(SeriesSet, HalvingKeepsTheSamplesThatStay) {
  SeriesSet set(1);
  const u64 values[] = {1, 2, 2, 3, 4, 4, 9, 0};
  for (u32 i = 0; i < 8; ++i) set.note(0, i, values[i]);
  set.halve();
  EXPECT_EQ(set.filled(0, 4), (std::vector<u64>{1, 2, 4, 9}));
  EXPECT_EQ(set.points(), set.of(0).size());
}

TEST(SampleTimes, GoOnAtTwiceTheInterval) {
  SampleTimes times;
  for (int i = 0; i < 5; ++i) times.take(times.next());
  times.halve();
  EXPECT_EQ(times.times().size(), 3u);
  EXPECT_EQ(times.times().back(), Time() + us(4));
  EXPECT_EQ(times.next(), Time() + us(6));
}

}  // namespace
}  // namespace verbena::fabric
