// TIMELY: the rate of one flow, computed from the changes of its round trips.
// Mittal et al., TIMELY: RTT-based Congestion Control for the Datacenter, SIGCOMM 2015, algorithm
// 1:
//   diff = (1 - alpha) * diff + alpha * (rtt - last rtt);  gradient = diff / min_rtt
//   rtt < t_low           rate = rate + delta
//   rtt > t_high          rate = rate * (1 - beta * (1 - t_high / rtt))
//   gradient <= 0         rate = rate + N * delta;  N = 5 at the fifth such time in a row, else 1
//   else                  rate = rate * (1 - beta * gradient), the gradient being 1 at most
// One round trip counts for each segment that is acknowledged.
//
// HPCC's ns-3 model (https://github.com/alibaba-edu/High-Precision-Congestion-Control) differs
// (Variant::kHPCCModel). One sample counts in each round trip. Rises of any kind count, not only
// those by the gradient, and after hyper_after of them the step is hyper_delta. The gradient may be
// so large that the rate falls to min_rate.
#pragma once

#include "congestion/algorithm.h"

namespace verbena {

struct TIMELYParameters {
  enum class Variant : u8 { kPaper, kHPCCModel };
  Variant variant = Variant::kPaper;
  Rate line_rate = gbps(10);  // flows start with it and never exceed it
  Rate min_rate = mbps(1);    // 1 kb/s .. line_rate
  double alpha = 0.875;       // weight of the newest difference. 0 .. 1
  double beta = 0.8;          // 0 .. 1
  Rate delta = mbps(10);      // 1 kb/s and more
  Duration t_low = us(50);    // 0 .. t_high
  Duration t_high = us(500);
  Duration min_rtt = us(20);    // of the network without queues. 1 ns and more
  u32 hyper_after = 5;          // times in a row that the gradient is not positive
  Rate hyper_delta = mbps(50);  // N * delta. 1 kb/s and more
  u32 segment_bytes = 16384;    // paper: 16 to 64 KB

  [[nodiscard]] bool valid() const;
};

class TIMELY : public Algorithm {
 public:
  using Variant = TIMELYParameters::Variant;
  static constexpr bool kWantsAcks = true;

  explicit TIMELY(const TIMELYParameters& parameters)
      : p_(parameters), rate_(parameters.line_rate) {}
  void on_ack(const AckSignal& ack, Time now);
  [[nodiscard]] Rate rate(Time) const { return rate_; }

 private:
  [[nodiscard]] bool counts(const AckSignal& ack);
  void on_round_trip(Duration rtt);
  void rise(Duration rtt);
  void add(Rate step);
  void multiply(double factor);

  const TIMELYParameters& p_;
  Rate rate_;
  Duration last_rtt_{};  // 0: none yet
  double diff_ns_ = 0;
  u32 rises_ = 0;        // in a row; kPaper: those by the gradient
  u64 bytes_ = 0;        // acknowledged since the last round trip that counted
  u64 round_bytes_ = 0;  // kHPCCModel: bytes in flight then
};

}  // namespace verbena
