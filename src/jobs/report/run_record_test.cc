#include "jobs/report/run_record.h"

#include <gtest/gtest.h>

#include "collectives/make_schedule.h"

namespace verbena::jobs {
namespace {

Time at(u64 microseconds) { return Time() + us(static_cast<i64>(microseconds)); }

TEST(MessageLog, KeepsAllWhereTheyAreFew) {
  MessageLog log(2);
  for (u64 i = 0; i < 10; ++i) log.add(1, {.from = 0, .bytes = 100, .posted = at(i)}, at(i + 3));
  EXPECT_TRUE(log.of(0).empty());
  ASSERT_EQ(log.of(1).size(), 10u);
  EXPECT_EQ(log.each_stands_for(1), 1u);
  EXPECT_EQ(log.of(1)[4].took, us(3));
}

TEST(MessageLog, KeepsSomeOfManyEvenlySpread) {
  constexpr u32 kRanks = MessageLog::kMostMessages;  // so that each has the least
  constexpr u64 kMessages = 1000;
  MessageLog log(kRanks);
  for (u64 i = 0; i < kMessages; ++i) log.add(7, {.posted = at(i)}, at(i));
  const u32 every = log.each_stands_for(7);
  EXPECT_LE(log.of(7).size(), MessageLog::kLeastOfRank);
  EXPECT_GT(log.of(7).size(), MessageLog::kLeastOfRank / 2 - 1);
  for (std::size_t i = 0; i < log.of(7).size(); ++i)
    EXPECT_EQ(log.of(7)[i].what.posted, at(i * every)) << i;
  EXPECT_GE(log.of(7).size() * every, kMessages);
}

TEST(MessageLog, KeepsTheSlowestOfMany) {
  constexpr u32 kRanks = MessageLog::kMostMessages;  // so that each has the least
  MessageLog log(kRanks);
  for (u64 i = 0; i < 1000; ++i) {
    const Duration alone = us(i == 999 ? 500 : 1);  // the last takes long, and loses little
    log.add(7, {.posted = at(i), .alone = alone},
            at(i) + us(i == 333 || i == 666 ? 40 : 2) + alone);
  }
  ASSERT_EQ(log.slowest_of(7).size(), MessageLog::kLeastSlowestOfRank);
  for (const MessageLog::Message& message : log.slowest_of(7)) EXPECT_EQ(message.lost(), us(40));
  EXPECT_TRUE(log.slowest_of(6).empty());
}

TEST(ProgressLog, KnowsWhenEachEighthWasDone) {
  const auto schedule = collectives::make_schedule({.operation = collectives::Operation::kAllReduce,
                                                    .algorithm = collectives::Algorithm::kRing,
                                                    .ranks = 2,
                                                    .bytes = 64 * 1024,
                                                    .channels = 2,
                                                    .chunk_bytes = 1024});
  ProgressLog log(*schedule);
  const u64 steps = schedule->steps(1, 1);
  ASSERT_GE(steps, u64{ProgressLog::kParts});
  for (u64 i = 0; i < steps; ++i) log.add(1, 1, i, at(i + 1));
  for (u32 part = 1; part <= ProgressLog::kParts; ++part) {
    EXPECT_EQ(log.reached(1, 1, part), at((steps * part + 7) / 8)) << part;
    EXPECT_EQ(log.reached(0, 1, part), Time::never());
  }
}

}  // namespace
}  // namespace verbena::jobs
