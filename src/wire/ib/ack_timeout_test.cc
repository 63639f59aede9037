#include "wire/ib/ack_timeout.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

TEST(AckTimeoutTest, ZeroIsInfinite) { EXPECT_FALSE(ack_timeout(0).has_value()); }

TEST(AckTimeoutTest, KnownValues) {
  EXPECT_EQ(ack_timeout(1), ns(8'192));
  EXPECT_EQ(ack_timeout(14), ns(67'108'864));  // perftest's default: 67.1 ms
  EXPECT_EQ(ack_timeout(18), ns(1'073'741'824));
  EXPECT_EQ(ack_timeout(31), ns(8'796'093'022'208));  // 2.4 hours
  EXPECT_EQ(ack_timeout(32 + 14), ack_timeout(14));
}

TEST(AckTimeoutTest, EachCodeDoubles) {
  for (u8 code = 1; code < 31; ++code)
    EXPECT_EQ(*ack_timeout(static_cast<u8>(code + 1)), *ack_timeout(code) * 2) << int{code};
}

}  // namespace
}  // namespace verbena
