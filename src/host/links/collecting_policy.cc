#include "host/links/collecting_policy.h"

#include <algorithm>

namespace verbena::host {

bool CollectingPolicy::may_take(u64 queued, Time now) {
  if (queued > queued_) {
    queued_ = queued;
    grew_ = now;
  }
  if (queued_ >= target_) {
    target_ = std::min(target_ + kGrowth, kMost);
    pause_ = kLeastPause;
  } else if (now >= grew_ + kPatience) {
    on_standstill(now);
  } else if (now >= began_ + kLongest) {
    forget();
  } else {
    return false;
  }
  collects_ = false;
  return true;
}

void CollectingPolicy::on_standstill(Time now) {
  forget();
  target_ = queued_ / 4 * 3;
  if (target_ >= kLeast) return;
  target_ = kMost;
  paused_until_ = now + pause_;
  pause_ = std::min(pause_ * 2, kLongestPause);
}

void CollectingPolicy::forget() {
  dense_ = false;
  counted_ = 0;
}

void CollectingPolicy::on_taken(u64 octets, Time now) {
  if (!possible_) return;
  taken_ = now;
  if (now >= counted_since_ + kDenseTime) {
    counted_since_ = now;
    counted_ = 0;
  }
  counted_ += octets;
  dense_ |= counted_ >= kDense && now >= paused_until_;
}

void CollectingPolicy::on_empty(Time now) {
  if (!dense_) return;
  if (now >= taken_ + kBreak) return forget();
  collects_ = true;
  queued_ = 0;
  began_ = grew_ = now;
}

}  // namespace verbena::host
