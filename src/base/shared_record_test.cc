#include "base/shared_record.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace verbena {
namespace {

struct Pair {
  u64 a = 0, b = 0;
};

TEST(SharedRecordTest, ZeroedMemoryIsARecordOfZeros) {
  const auto record = std::make_unique<SharedRecord<Pair>>();
  Pair pair{1, 2};
  ASSERT_TRUE(record->load(pair));
  EXPECT_EQ(pair.a, 0u);
  EXPECT_EQ(pair.b, 0u);
}

TEST(SharedRecordTest, GivesWhatWasStoredLast) {
  SharedRecord<Pair> record{};
  record.store({1, 2});
  record.store({3, 4});
  Pair pair;
  ASSERT_TRUE(record.load(pair));
  EXPECT_EQ(pair.a, 3u);
  EXPECT_EQ(pair.b, 4u);
}

TEST(SharedRecordTest, NeverGivesAMixture) {
  SharedRecord<Pair> record{};
  std::thread writer([&record] {
    for (u64 i = 1; i <= 200'000; ++i) record.store({i, ~i});
  });
  Pair pair;
  do {
    while (!record.load(pair)) std::this_thread::yield();
    ASSERT_EQ(pair.b, pair.a == 0 ? 0 : ~pair.a);
  } while (pair.a != 200'000);
  writer.join();
}

}  // namespace
}  // namespace verbena
