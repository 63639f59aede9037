#include "host/nic/token_bucket.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

constexpr Time kBegin = Time::from_ns(5'000'000'000);

u64 sent_in(TokenBucket& bucket, Duration time, u64 packet, Duration step) {
  u64 sent = 0;
  for (Time now = kBegin; now < kBegin + time; now = now + step)
    while (bucket.may_send(now)) {
      bucket.on_sent(packet);
      sent += packet;
    }
  return sent;
}

TEST(TokenBucketTest, NoLimit) {
  TokenBucket bucket;
  EXPECT_FALSE(bucket.is_limited());
  for (u32 i = 0; i < 100; ++i) {
    EXPECT_TRUE(bucket.may_send(kBegin));
    bucket.on_sent(1 << 30);
  }
}

TEST(TokenBucketTest, KeepsItsRateWhateverTheSteps) {
  for (const Duration step : {us(1), us(7), us(333), ms(1)}) {
    TokenBucket bucket(1'000'000'000, 1 << 20);
    const u64 sent = sent_in(bucket, sec(1), 4136, step);
    EXPECT_NEAR(static_cast<double>(sent), 125e6 + (1 << 20), 125e6 * 0.01) << step.ns();
  }
}

TEST(TokenBucketTest, BurstIsAllThatIsSaved) {
  TokenBucket bucket(8'000'000, 10'000);
  (void)sent_in(bucket, ms(1), 100, ms(1));
  u64 burst = 0;
  while (bucket.may_send(kBegin + sec(100))) {
    bucket.on_sent(100);
    burst += 100;
  }
  EXPECT_EQ(burst, 10'000u);
}

TEST(TokenBucketTest, SaysWhenItIsReady) {
  TokenBucket bucket(8'000'000, 1000);  // a byte in a microsecond
  ASSERT_TRUE(bucket.may_send(kBegin));
  bucket.on_sent(1500);
  ASSERT_FALSE(bucket.may_send(kBegin));
  const Time ready = bucket.ready_at(kBegin);
  EXPECT_NEAR(static_cast<double>((ready - kBegin).ns()), 501'000, 2000);
  EXPECT_FALSE(bucket.may_send(kBegin + us(400)));
  EXPECT_TRUE(bucket.may_send(ready + us(2)));
}

}  // namespace
}  // namespace verbena::host
