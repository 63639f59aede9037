// DCTCP: the rate of one flow, from the share of its packets that were marked in each round trip.
// Alizadeh et al., Data Center TCP, SIGCOMM 2010, 3.1; RFC 8257, 3.3, with a rate in the window's
// place, as HPCC's ns-3 model has it. Once in a round trip, with F the share of marked packets:
//   alpha = (1 - g) * alpha + g * F
//   rate  = rate + additive_increase,  unless it was lowered in this round trip
// and at the first mark of a round trip
//   rate  = rate * (1 - alpha / 2)
// A mark is a CNP: this algorithm needs one for each marked packet
// (NotificationParameters::cnp_interval 0).
#pragma once

#include "congestion/algorithm.h"

namespace verbena {

struct DCTCPParameters {
  Rate line_rate = gbps(10);          // flows start with it and never exceed it
  Rate min_rate = mbps(1);            // 1 kb/s .. line_rate
  double g = 1.0 / 16;                // 1/1024 .. 1. RFC 8257, 4.2
  Rate additive_increase = mbps(80);  // a segment in a round trip. 1 kb/s and more
  u32 packet_bytes = 1000;            // of payload, as marks count packets. 1 and more

  [[nodiscard]] bool valid() const;
};

class DCTCP : public Algorithm {
 public:
  static constexpr bool kWantsAcks = true;

  explicit DCTCP(const DCTCPParameters& parameters) : p_(parameters), rate_(p_.line_rate) {}
  void on_cnp(Time) { marked_ = true; }
  void on_ack(const AckSignal& ack, Time now);
  [[nodiscard]] Rate rate(Time) const { return rate_; }
  [[nodiscard]] double alpha(Time) const { return alpha_; }

 private:
  void end_round(u64 in_flight_bytes);

  const DCTCPParameters& p_;
  Rate rate_;
  double alpha_ = 1;
  u64 acknowledged_ = 0;  // bytes, in the whole life
  u64 round_end_ =
      0;  // in these bytes: the end of the data that had been sent when the round trip began
  u64 lowered_until_ = 0;  // likewise, at the time of the last decrease
  u64 round_packets_ = 0, round_marks_ = 0;
  bool marked_ = false;  // since the last acknowledgement
};

}  // namespace verbena
