#include "connect/cm_timeout.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

TEST(CMTimeoutTest, CodesArePowersOfTwo) {
  EXPECT_EQ(cm_timeout(8), ns(1'048'576));
  EXPECT_EQ(cm_timeout(20), ns(4'294'967'296));
}

TEST(CMTimeoutTest, ThePeersWordHasLimits) {
  EXPECT_EQ(cm_timeout(0), cm_timeout(kMinTimeoutCode));
  EXPECT_EQ(cm_timeout(31), cm_timeout(kMaxTimeoutCode));
}

TEST(CMTimeoutTest, AnAnswerHasToGoOutAndComeBack) {
  EXPECT_EQ(cm_response_time(20, 18), cm_timeout(20) + cm_timeout(18) * 2);
}

TEST(AckTimeoutCodeTest, IsWhatLinuxWrites) {
  EXPECT_EQ(ack_timeout_code(15, 18), 0x13);  // rxe's delay: every REQ in tests/captures
  // 4.096 * 2^a = delay + 2 * life time, the nearest code upwards as cm.c finds it
  EXPECT_EQ(ack_timeout_code(18, 18), 20);
  EXPECT_EQ(ack_timeout_code(19, 18), 20);
  EXPECT_EQ(ack_timeout_code(20, 18), 21);
  EXPECT_EQ(ack_timeout_code(25, 18), 25);
  EXPECT_EQ(ack_timeout_code(0, 0), 2);
  EXPECT_EQ(ack_timeout_code(31, 31), 31);  // 5 bits
}

}  // namespace
}  // namespace verbena
