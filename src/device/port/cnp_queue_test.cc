#include "device/port/cnp_queue.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

struct CNPQueueTest : ::testing::Test {
  QueuePair a{{}, {}}, b{{}, {}};
  static constexpr Duration kInterval = us(50);
  CNPQueue cnps{{.cnp_interval = kInterval}};
  Time now = Time::from_ns(0);
};

TEST_F(CNPQueueTest, AtMostOnePerIntervalAndQP) {
  cnps.on_marked(a, now);
  cnps.on_marked(a, now + ns(1));
  cnps.on_marked(b, now + ns(2));
  EXPECT_EQ(cnps.pop(), &a);
  EXPECT_EQ(cnps.pop(), &b);
  cnps.on_marked(a, now + kInterval - ps(1));
  EXPECT_EQ(cnps.pop(), nullptr);
  cnps.on_marked(a, now + kInterval);
  EXPECT_EQ(cnps.pop(), &a);
  EXPECT_EQ(cnps.pop(), nullptr);
}

TEST_F(CNPQueueTest, ForgottenOwesNothing) {
  cnps.on_marked(a, now);
  cnps.forget(a);
  EXPECT_EQ(cnps.pop(), nullptr);
}

}  // namespace
}  // namespace verbena
