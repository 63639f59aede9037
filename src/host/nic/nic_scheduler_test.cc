#include "host/nic/nic_scheduler.h"

#include <gtest/gtest.h>

#include <vector>

namespace verbena::host {
namespace {

constexpr u64 kFloodBytes = 4000;

// One whose programs always have something to send, unless `is_idle`.
class Flooding {
 public:
  explicit Flooding(const NICFunctionConfig& config)
      : config_(config),
        max_(config.max_bps, config.burst_bytes),
        guaranteed_(config.guaranteed_bps, config.burst_bytes) {}

  bool is_idle = false;
  u64 sent_bytes = 0;
  i64 deficit = 0;

  [[nodiscard]] bool has_more() const { return !is_idle; }
  [[nodiscard]] bool may_send(Time now) { return !is_idle && max_.may_send(now); }
  [[nodiscard]] bool is_guaranteed(Time now) {
    return guaranteed_.is_limited() && guaranteed_.may_send(now);
  }
  [[nodiscard]] const NICFunctionConfig& config() const { return config_; }
  u64 send(u64 bytes, Time now) {
    u64 sent = 0;
    for (; sent < bytes && max_.may_send(now); sent += kFloodBytes) {
      max_.on_sent(kFloodBytes);
      guaranteed_.on_sent(kFloodBytes);
    }
    sent_bytes += sent;
    return sent;
  }

 private:
  NICFunctionConfig config_;
  TokenBucket max_, guaranteed_;
};

class NICSchedulerTest : public testing::Test {
 protected:
  void begin(u64 bps, const std::vector<NICFunctionConfig>& configs) {
    scheduler_ = NICScheduler<Flooding>(bps);
    functions_.clear();
    for (const NICFunctionConfig& config : configs) functions_.emplace_back(config);
  }
  // Bits per second of each function over `time`. The NIC looks each 20 us.
  std::vector<double> rates(Duration time) {
    for (Flooding& function : functions_) function.sent_bytes = 0;
    for (const Time end = now_ + time; now_ < end; now_ = now_ + us(20))
      (void)scheduler_.serve(functions_, now_, [this](Flooding& function, u64 bytes) {
        return function.send(bytes, now_);
      });
    std::vector<double> rates;
    for (const Flooding& function : functions_)
      rates.push_back(static_cast<double>(function.sent_bytes) * 8 / time.seconds());
    return rates;
  }
  // The same after the bursts, which the first have for themselves.
  std::vector<double> steady_rates() {
    (void)rates(ms(200));
    return rates(sec(1));
  }

  Time now_;
  NICScheduler<Flooding> scheduler_{0};
  std::vector<Flooding> functions_;
};

TEST_F(NICSchedulerTest, ByWeight) {
  begin(200'000'000, {{.weight = 1}, {.weight = 3}});
  const std::vector<double> sent = steady_rates();
  EXPECT_NEAR(sent[0], 50e6, 2e6);
  EXPECT_NEAR(sent[1], 150e6, 2e6);
}

// The lower priority gets what the higher one's maximum leaves, whatever its weight.
TEST_F(NICSchedulerTest, ByPriority) {
  begin(200'000'000, {{.weight = 100}, {.priority = 1, .max_bps = 150'000'000}});
  const std::vector<double> sent = steady_rates();
  EXPECT_NEAR(sent[0], 50e6, 2e6);
  EXPECT_NEAR(sent[1], 150e6, 2e6);
}

TEST_F(NICSchedulerTest, AHigherPriorityTakesAll) {
  begin(200'000'000, {{.weight = 100}, {.priority = 1}});
  const std::vector<double> sent = steady_rates();
  EXPECT_EQ(sent[0], 0);
  EXPECT_NEAR(sent[1], 200e6, 2e6);
}

// A guaranteed rate is kept against a higher priority.
TEST_F(NICSchedulerTest, GuaranteedBeforePriority) {
  begin(200'000'000, {{.guaranteed_bps = 40'000'000}, {.priority = kMaxNICPriority}});
  const std::vector<double> sent = steady_rates();
  EXPECT_NEAR(sent[0], 40e6, 2e6);
  EXPECT_NEAR(sent[1], 160e6, 2e6);
}

TEST_F(NICSchedulerTest, TenFunctionsShareAlike) {
  begin(400'000'000, std::vector<NICFunctionConfig>(10));
  for (const double rate : steady_rates()) EXPECT_NEAR(rate, 40e6, 1e6);
}

TEST_F(NICSchedulerTest, WhatAMaximumLeavesGoesToTheOthers) {
  begin(300'000'000, {{.max_bps = 20'000'000}, {}, {}});
  const std::vector<double> sent = steady_rates();
  EXPECT_NEAR(sent[0], 20e6, 1e6);
  EXPECT_NEAR(sent[1], 140e6, 2e6);
  EXPECT_NEAR(sent[2], 140e6, 2e6);
}

// One that had nothing to send has saved no share.
TEST_F(NICSchedulerTest, ALateOneGetsItsShareAndNoMore) {
  begin(100'000'000, {{}, {}});
  functions_[1].is_idle = true;
  EXPECT_NEAR(steady_rates()[0], 100e6, 2e6);
  functions_[1].is_idle = false;
  const std::vector<double> sent = rates(ms(100));
  EXPECT_NEAR(sent[0], 50e6, 5e6);
  EXPECT_NEAR(sent[1], 50e6, 5e6);
}

TEST_F(NICSchedulerTest, NobodyHasWork) {
  begin(0, {{}, {}});
  for (Flooding& function : functions_) function.is_idle = true;
  EXPECT_FALSE(scheduler_.serve(functions_, now_, [](Flooding&, u64) { return u64{1}; }));
}

}  // namespace
}  // namespace verbena::host
