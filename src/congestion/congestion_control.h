// CongestionControl: one flow's rate and window, computed from the network's signals by the
// algorithm that CongestionParameters choose.
//
// Sans-IO: no clock, thread, lock, global or allocation. Same calls in the same order give the same
// outputs, bit for bit. One owner; not thread-safe. `now` never goes back. There is no timer to
// serve: state that changes with time alone is updated when it is read.
#pragma once

#include <variant>

#include "congestion/constant_rate.h"
#include "congestion/dcqcn/reaction_point.h"
#include "congestion/dctcp/dctcp.h"
#include "congestion/hpcc/hpcc.h"
#include "congestion/ib_cc/ib_cc.h"
#include "congestion/parameters.h"
#include "congestion/signals.h"
#include "congestion/swift/swift.h"
#include "congestion/timely/timely.h"

namespace verbena {

class CongestionControl {
 public:
  // `parameters` outlive it, are valid(), and controls().
  explicit CongestionControl(const CongestionParameters& parameters);

  // --- inputs
  void on_cnp(Time now);
  void on_ack(const AckSignal& ack, Time now);
  void on_nak(Time now);              // a PSN sequence error: a packet was lost
  void on_timeout(Time now);          // the peer was silent
  void on_sent(u64 bytes, Time now);  // as pacing counts them

  // --- outputs
  // Returns the rate of the next packet.
  [[nodiscard]] Rate rate(Time now);
  // Returns the number of payload bytes that may be in flight: a packet may leave while fewer are.
  [[nodiscard]] u64 window(Time now);
  // Returns whether the rate falls later, whatever signals arrive until then. Since the last
  // rate().
  [[nodiscard]] bool will_slow_down() const;
  // Returns whether on_ack(), on_nak(), on_timeout() and window() have an effect.
  [[nodiscard]] bool wants_acks() const;
  // Returns whether a change of the rate moves a wait that has begun. Then only acknowledgements
  // change it.
  [[nodiscard]] bool moves_waits() const;

  // For statistics. Call them on a copy of the whole to leave this object unchanged.
  [[nodiscard]] Rate target(Time now);
  [[nodiscard]] double alpha(Time now);

 private:
  using AnyAlgorithm = std::variant<ConstantRate, ReactionPoint, TIMELY, Swift, HPCC, DCTCP, IBCC>;
  static AnyAlgorithm start(const CongestionParameters& parameters);
  [[nodiscard]] u64 window_by_rate(Time now);

  const WindowParameters& window_;
  AnyAlgorithm algorithm_;
};

}  // namespace verbena
