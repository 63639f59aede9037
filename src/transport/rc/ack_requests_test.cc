#include "transport/rc/ack_requests.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

constexpr u32 kInterval = 8;

class AckRequestsTest : public testing::Test {
 protected:
  bool asks(u32 packets = 1, Time now = Time()) {
    BTH bth;
    bth.ack_req = false;
    requests.on_message(bth, packets, now);
    return bth.ack_req;
  }

  RCLimits limits{.path = {.ack_request_period = us(100)}, .ack_interval = kInterval};
  AckRequests requests{limits};
};

TEST_F(AckRequestsTest, AsksAtIntervals) {
  for (u32 i = 1; i <= 4 * kInterval; ++i) {
    EXPECT_EQ(asks(), i % kInterval == 0) << i;
    EXPECT_EQ(requests.has_asked(), i % kInterval == 0) << i;
  }
}

TEST_F(AckRequestsTest, APacketThatMustAskBeginsAnInterval) {
  (void)asks();
  BTH bth;
  bth.ack_req = true;
  requests.on_message(bth, 1, Time());
  EXPECT_TRUE(bth.ack_req);
  for (u32 i = 1; i < kInterval; ++i) EXPECT_FALSE(asks()) << i;
  EXPECT_TRUE(asks());
}

TEST_F(AckRequestsTest, ATrainOfTheRoomDoesNotAsk) {
  EXPECT_EQ(requests.room(), kInterval - 1);
  EXPECT_FALSE(asks(3));
  EXPECT_EQ(requests.room(), kInterval - 4);
  EXPECT_FALSE(asks(requests.room()));
  EXPECT_EQ(requests.room(), 0u);
  EXPECT_TRUE(asks());
}

TEST_F(AckRequestsTest, SlowPacketsAskAfterTheirPeriod) {
  EXPECT_FALSE(asks(1, Time() + us(99)));
  EXPECT_TRUE(requests.is_late(Time() + us(100)));
  EXPECT_TRUE(asks(1, Time() + us(100)));
  EXPECT_FALSE(asks(1, Time() + us(150)));
  requests.restart_period(Time() + us(180));
  EXPECT_FALSE(asks(1, Time() + us(250)));
}

TEST_F(AckRequestsTest, WithProbesThePeriodIsHalfOfTheirMinimum) {
  RCLimits probing = limits;
  probing.path.min_probe_timeout = us(50);
  EXPECT_TRUE(AckRequests(probing).is_late(Time() + us(25)));
  EXPECT_FALSE(AckRequests(probing).is_late(Time() + us(24)));
}

}  // namespace
}  // namespace verbena
