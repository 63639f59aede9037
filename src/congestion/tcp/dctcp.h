// DCTCP: Reno with a reaction in proportion to the congestion: the share of marked bytes. RFC 8257,
// 3.3. Once in a window, with F the share of marked bytes:
//   alpha = (1 - g) * alpha + g * F
// and, if there was a mark, cwnd = cwnd * (1 - alpha / 2). Losses count as Reno's (3.5).
#pragma once

#include "congestion/tcp/reno.h"

namespace verbena::tcp {

class DCTCP {
 public:
  static constexpr double kG = 1.0 / 16;  // RFC 8257, 4.2

  explicit DCTCP(const WindowState& state) : reno_(state) {}

  struct Acknowledgement {
    u64 bytes = 0;           // newly
    u64 marked_bytes = 0;    // of those
    u64 up_to = 0;           // the stream's bytes acknowledged so far
    u64 sent = 0;            // and sent so far
    bool grows = false;      // the window was the sender's limit
    bool may_reduce = true;  // no loss is being repaired, which would have reduced it already
  };
  void on_acknowledged(const Acknowledgement& ack, Time now);
  void on_congestion(u64 in_flight, Time now) { reno_.on_congestion(in_flight, now); }
  void on_timeout(u64 in_flight, Time now) { reno_.on_timeout(in_flight, now); }
  [[nodiscard]] const WindowState& state() const { return reno_.state(); }
  [[nodiscard]] double alpha() const { return alpha_; }
  // Returns true once after the window was reduced, which the peer must be told (CWR).
  [[nodiscard]] bool take_reduction();

 private:
  void end_window(u64 sent);
  void reduce();

  Reno reno_;
  double alpha_ = 1;  // 3.3: the first mark counts as in Reno
  u64 bytes_ = 0, marked_ = 0;
  u64 window_end_ = 0;     // the window of observation ends when this is acknowledged
  u64 reduced_until_ = 0;  // no further mark counts until this is acknowledged
  bool reduced_ = false;
};

}  // namespace verbena::tcp
