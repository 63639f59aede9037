// HPCC: the window of one flow, computed from the telemetry (INT) of each hop of its path.
// Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019, algorithm 1. For each hop since
// the last acknowledgement:
//   u = min(queue, last queue) / (rate * T) + sent / (elapsed * rate)
//   U = the greatest of them, smoothed over T
//   U >= eta, or max_stage additive steps    W = Wc / (U / eta) + W_AI
//   else                                     W = Wc + W_AI
// Wc becomes W once in a round trip. The flow is paced at W / T. Here windows are kept as rates, W
// / T and Wc / T, in whole bits per second.
//
// Choices that the authors' ns-3 model offers too (FAST_REACT 0, MULTI_RATE 1 and VAR_WIN 0 there):
// react to one acknowledgement in each round trip; keep U and Wc for each hop and use the least W;
// bound the flow by the rate alone, or by WindowParameters too.
#pragma once

#include "congestion/algorithm.h"

namespace verbena {

struct HPCCParameters {
  enum class Reaction : u8 { kEachAck, kEachRoundTrip };
  enum class Loop : u8 { kOne, kEachHop };
  enum class Bound : u8 { kWindowAndRate, kRate };
  Reaction reaction = Reaction::kEachAck;
  Loop loop = Loop::kOne;
  Bound bound = Bound::kWindowAndRate;
  Rate line_rate = gbps(100);  // flows start with a window of line_rate * base_rtt
  Rate min_rate = mbps(100);   // 1 kb/s .. line_rate
  Duration base_rtt = us(13);  // T: the network's, without queues. 1 ns .. 10 s
  double eta = 0.95;           // utilization aimed at. Above 0, 1 at most
  u32 max_stage = 5;           // additive steps in a row
  double additive_bytes = 80;  // W_AI: window * (1 - eta) / flows that share a link, at most
  // The data that the network holds at line_rate, by which queues are measured; 0: line_rate *
  // base_rtt.
  u64 pipe_bytes = 0;

  [[nodiscard]] bool valid() const;
};

class HPCC : public Algorithm {
 public:
  static constexpr bool kWantsAcks = true;
  static constexpr bool kMovesWaits = true;

  explicit HPCC(const HPCCParameters& parameters);
  void on_ack(const AckSignal& ack, Time now);
  [[nodiscard]] Rate rate(Time) const { return rate_; }
  [[nodiscard]] u64 window(Time) const {
    return p_.bound == HPCCParameters::Bound::kRate ? kNoWindow : bytes_in_flight(rate_);
  }
  [[nodiscard]] double alpha(Time) const { return loops_[0].utilization; }  // U

 private:
  struct Loop {
    Rate reference;          // Wc / T
    double utilization = 1;  // U
    u32 stage = 0;
  };
  struct Load {  // of a hop, since the last acknowledgement
    double u = 0;
    Duration elapsed{};  // 0: unknown
  };

  u64 bytes_in_flight(Rate rate) const;
  Load load_of(const HopTelemetry& hop, const HopTelemetry& last) const;
  void measure(Loop& loop, const Load& load) const;
  Rate adjust(Loop& loop) const;
  void use_highest(const PathTelemetry& path);
  void use_each(const PathTelemetry& path);

  const HPCCParameters& p_;
  const double pipe_;                                // bytes
  const Rate step_;                                  // W_AI / T
  Rate rate_;                                        // W / T
  std::array<Loop, PathTelemetry::kMaxHops> loops_;  // kOne: the first
  u64 round_left_ = 0;                               // bytes that were in flight when Wc was set
  bool new_round_ = true;
  PathTelemetry last_;  // of the last acknowledgement that was used
};

}  // namespace verbena
