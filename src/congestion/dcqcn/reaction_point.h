// DCQCN's reaction point: the rate of one flow, computed from the CNPs that it receives.
// Zhu et al., SIGCOMM 2015, 3.1 and figure 7; parameters.h has the choices.
//   at a decrease           target = rate;  rate = rate * (1 - alpha / 2)
//   CNP since the last time alpha = (1 - g) * alpha + g,  else  alpha = (1 - g) * alpha
//   at an increase          rate = (rate + target) / 2, after target += R_AI or R_HAI:
//     T and B count the ends of timer and byte counter since the last decrease;
//     max(T, B) < F   fast recovery: the target stays
//     min(T, B) > F   hyper increase;  otherwise additive increase. Without B, T is both.
//
// There are no timers to serve. Each call makes up for the timer events that became due since the
// last call, in the order and with the arithmetic of timers, so that results are equal bit for bit.
// That takes at most line rate / R_HAI steps (in silence with a byte counter, / R_AI), usually one
// or none. Rates are whole bits per second, truncated. `now` never goes back.
#pragma once

#include "congestion/algorithm.h"
#include "congestion/dcqcn/parameters.h"

namespace verbena {

class ReactionPoint : public Algorithm {
 public:
  // `parameters` is valid().
  explicit ReactionPoint(const DCQCNParameters& parameters)
      : p_(parameters), rate_(parameters.line_rate), target_(parameters.line_rate) {}

  void on_cnp(Time now);
  void on_sent(u64 bytes, Time now) {
    if (started_ && p_.byte_counter != 0) count(bytes, now);
  }
  [[nodiscard]] Rate rate(Time now) {
    if (started_ && now >= next_change()) advance(now);
    return rate_;
  }

  // kPeriodic: returns true until the end of the period in which a CNP came.
  [[nodiscard]] bool will_slow_down() const { return decrease_at_ != Time::never(); }

  // For statistics.
  [[nodiscard]] Rate target(Time now);
  [[nodiscard]] double alpha(Time now);  // 0 .. 1

 private:
  void start(Time now);
  void advance(Time now);
  void count(u64 bytes, Time now);
  void update_alpha(Time now);
  void decrease(Time at);
  void increase();
  void skip_increases(Time until);
  [[nodiscard]] Time next_change() const {
    return increase_at_ < decrease_at_ ? increase_at_ : decrease_at_;
  }
  [[nodiscard]] bool decrease_is_next() const;

  const DCQCNParameters& p_;
  Rate rate_, target_;
  double alpha_ = 0;
  Time alpha_since_;                  // the last update of alpha
  Time increase_at_ = Time::never();  // the timer's next end
  Time decrease_at_ = Time::never();  // kPeriodic: of the period in which a CNP came
  Time decrease_base_;  // kPeriodic: when the periods began; kAtCNP: the last decrease
  u64 bytes_ = 0;       // since the byte counter's last end
  u32 timer_ends_ = 0, byte_ends_ = 0;  // T and B
  bool started_ = false;
  bool notified_ = false;  // kPeriodic: since the last update of alpha
  bool settled_ = false;   // further increases change nothing
};

}  // namespace verbena
