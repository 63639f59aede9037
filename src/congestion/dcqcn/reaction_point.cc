#include "congestion/dcqcn/reaction_point.h"

#include <algorithm>
#include <limits>

namespace verbena {
namespace {

// Below this value, alpha counts as 0 in all computations: 1 - alpha / 2 is 1, and alpha + g is g.
constexpr double kNegligible = 1e-20;

u32 saturated_sum(u32 a, i64 b) {
  constexpr i64 kMax = std::numeric_limits<u32>::max();
  return static_cast<u32>(std::min(kMax, a + std::min(b, kMax)));
}

}  // namespace

void ReactionPoint::on_cnp(Time now) {
  if (!started_) return start(now);
  advance(now);
  switch (p_.decrease) {
    case DCQCNParameters::Decrease::kAtCNP:
      if (now < decrease_base_ + p_.decrease_interval) return;
      update_alpha(now);
      decrease(now);
      alpha_ = (1 - p_.g) * alpha_ + p_.g;
      alpha_since_ = decrease_base_ = now;
      return;
    case DCQCNParameters::Decrease::kPeriodic:
      update_alpha(now);
      notified_ = true;
      if (decrease_at_ != Time::never()) return;
      const i64 periods = (now - decrease_base_).ps() / p_.decrease_interval.ps();
      decrease_at_ = decrease_base_ + p_.decrease_interval * (std::max<i64>(periods, 0) + 1);
      return;
  }
}

void ReactionPoint::start(Time now) {
  started_ = true;
  alpha_ = p_.initial_alpha;
  alpha_since_ = decrease_base_ = now;
  switch (p_.decrease) {
    case DCQCNParameters::Decrease::kAtCNP:
      decrease(now);
      alpha_ = (1 - p_.g) * alpha_ + p_.g;
      return;
    case DCQCNParameters::Decrease::kPeriodic:
      decrease_base_ = now + p_.decrease_offset;
      decrease_at_ = decrease_base_ + p_.decrease_interval;
      return;
  }
}

// Returns whether the decrease comes first. Of two timers that end at the same time, the one that
// was set first comes first.
bool ReactionPoint::decrease_is_next() const {
  if (decrease_at_ != increase_at_) return decrease_at_ < increase_at_;
  return p_.decrease_interval >= p_.increase_interval;
}

void ReactionPoint::advance(Time now) {
  while (now >= next_change()) {
    if (decrease_is_next()) {
      update_alpha(decrease_at_);
      decrease(decrease_at_);
    } else if (settled_) {
      skip_increases(std::min(now, decrease_at_));
    } else {
      increase();
      timer_ends_ = saturated_sum(timer_ends_, 1);
      increase_at_ = increase_at_ + p_.increase_interval;
    }
  }
}

// Skips ends of the timer up to `until`, at least one, that only count.
void ReactionPoint::skip_increases(Time until) {
  const i64 ends = std::max<i64>((until - increase_at_).ps() / p_.increase_interval.ps(), 0) + 1;
  timer_ends_ = saturated_sum(timer_ends_, ends);
  increase_at_ = increase_at_ + p_.increase_interval * ends;
}

void ReactionPoint::count(u64 bytes, Time now) {
  advance(now);
  for (bytes_ += bytes; bytes_ >= p_.byte_counter; bytes_ -= p_.byte_counter) {
    increase();
    byte_ends_ = saturated_sum(byte_ends_, 1);
  }
}

// Multiplies out the periods of the alpha timer since the last update one by one, so that rounding
// equals a timer's.
void ReactionPoint::update_alpha(Time now) {
  i64 periods = (now - alpha_since_).ps() / p_.alpha_interval.ps();
  if (periods <= 0) return;
  alpha_since_ = alpha_since_ + p_.alpha_interval * periods;
  if (notified_) {
    alpha_ = (1 - p_.g) * alpha_ + p_.g;
    notified_ = false;
    --periods;
  }
  for (; periods > 0 && alpha_ > kNegligible; --periods) alpha_ = (1 - p_.g) * alpha_;
  if (alpha_ <= kNegligible) alpha_ = 0;
}

Rate ReactionPoint::target(Time now) {
  advance(now);
  return target_;
}

double ReactionPoint::alpha(Time now) {
  if (!started_) return p_.initial_alpha;
  advance(now);
  update_alpha(now);
  return alpha_;
}

void ReactionPoint::decrease(Time at) {
  const bool increased = timer_ends_ != 0 || byte_ends_ != 0;
  if (p_.clamp == DCQCNParameters::Clamp::kAlways || increased) target_ = rate_;
  const double lowered = static_cast<double>(rate_.bps()) * (1 - alpha_ / 2);
  rate_ = std::max(p_.min_rate, Rate::from_bps(static_cast<u64>(lowered)));
  timer_ends_ = byte_ends_ = 0;
  bytes_ = 0;
  settled_ = false;
  decrease_at_ = Time::never();
  increase_at_ = at + p_.increase_interval;
}

// Runs at an end of the timer or of the byte counter that is not counted yet.
void ReactionPoint::increase() {
  const Rate rate = rate_, target = target_;
  const u32 most = std::max(timer_ends_, byte_ends_);
  const u32 least = p_.byte_counter != 0 ? std::min(timer_ends_, byte_ends_) : timer_ends_;
  if (most >= p_.fast_recovery) {
    const Rate step = least > p_.fast_recovery ? p_.hyper_increase : p_.additive_increase;
    target_ = std::min(p_.line_rate, Rate::from_bps(target_.bps() + step.bps()));
  }
  rate_ = Rate::from_bps(rate_.bps() / 2 + target_.bps() / 2);
  settled_ = rate_ == rate && target_ == target && target_ == p_.line_rate;
}

}  // namespace verbena
