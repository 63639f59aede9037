// TokenBucket: how much may be sent now, of a rate with a burst. It may be overdrawn by one packet,
// which is paid back before the next.
#pragma once

#include <algorithm>

#include "base/time.h"
#include "base/types.h"

namespace verbena::host {

class TokenBucket {
 public:
  TokenBucket() = default;  // no limit
  // `bps` 0: no limit.
  TokenBucket(u64 bps, u64 burst_bytes)
      : bps_(bps), burst_(static_cast<i64>(burst_bytes)), tokens_(burst_) {}
  // A limit on requests, each of which counts as a byte. 0: no limit.
  [[nodiscard]] static TokenBucket of_requests(u32 per_second) {
    return TokenBucket(u64{per_second} * 8, per_second);
  }

  [[nodiscard]] bool is_limited() const { return bps_ != 0; }
  [[nodiscard]] bool may_send(Time now) {
    if (bps_ == 0) return true;
    refill(now);
    return tokens_ > 0;
  }
  void on_sent(u64 bytes) {
    if (bps_ != 0) tokens_ -= static_cast<i64>(bytes);
  }
  // When may_send() will be true if nothing is sent until then.
  [[nodiscard]] Time ready_at(Time now) const {
    if (bps_ == 0 || tokens_ > 0) return now;
    const double wait_s = static_cast<double>(1 - tokens_) * 8 / static_cast<double>(bps_);
    return now + ns(static_cast<i64>(wait_s * 1e9) + 1);
  }

 private:
  static constexpr i64 kLongestNs = 1'000'000'000;  // whatever the burst, more is never earned

  void refill(Time now) {
    const i64 passed_ns = std::min((now - last_).ns(), kLongestNs);
    const auto earned =
        static_cast<i64>(static_cast<double>(bps_) / 8e9 * static_cast<double>(passed_ns));
    if (earned <= 0) return;  // keeps the fraction for later
    tokens_ = std::min(tokens_ + earned, burst_);
    last_ = now;
  }

  u64 bps_ = 0;
  i64 burst_ = 0, tokens_ = 0;
  Time last_{};
};

}  // namespace verbena::host
