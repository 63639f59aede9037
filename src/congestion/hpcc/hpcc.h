// HPCC: the window of one flow, from what each hop of its path says of itself (INT).
// Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019, algorithm 1. For each hop since
// the last acknowledgement:
//   u = min(queue, last queue) / (rate * T) + sent / (elapsed * rate)
//   U = the greatest of them, smoothed over T
//   U >= eta, or max_stage additive steps    W = Wc / (U / eta) + W_AI
//   else                                     W = Wc + W_AI
// Wc becomes W once in a round trip. The flow is paced at W / T.
#pragma once

#include "congestion/algorithm.h"

namespace verbena {

struct HPCCParameters {
  Rate line_rate = gbps(100);  // flows start with a window of line_rate * base_rtt
  Rate min_rate = mbps(100);   // 1 kb/s .. line_rate
  Duration base_rtt = us(13);  // T: the network's, without queues. 1 ns .. 10 s
  double eta = 0.95;           // utilization aimed at. Above 0, 1 at most
  u32 max_stage = 5;           // additive steps in a row
  u64 additive_octets = 80;    // W_AI: window * (1 - eta) / flows that share a link, at most

  [[nodiscard]] bool valid() const;
};

class HPCC : public Algorithm {
 public:
  static constexpr bool kWantsAcks = true;

  explicit HPCC(const HPCCParameters& parameters);
  void on_ack(const AckSignal& ack, Time now);
  [[nodiscard]] Rate rate(Time now) const;
  [[nodiscard]] u64 window(Time) const { return static_cast<u64>(window_); }
  [[nodiscard]] double alpha(Time) const { return utilization_; }  // U

 private:
  bool measure(const PathTelemetry& path);
  void adjust();

  const HPCCParameters& p_;
  double window_, reference_;  // W and Wc, octets
  double utilization_ = 1;     // U
  u32 stage_ = 0;
  u64 round_left_ = 0;  // octets that were in flight when Wc was set
  bool new_round_ = true;
  PathTelemetry last_;  // of the last acknowledgement
};

}  // namespace verbena
