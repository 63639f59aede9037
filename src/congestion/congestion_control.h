// CongestionControl: one flow's rate and window, from what it hears of the network, by the
// algorithm that CongestionParameters choose.
//
// Sans-IO: no clock, thread, lock, global or allocation. Same calls in the same order give the same
// outputs, bit for bit. One owner; not thread-safe. `now` never goes back. There is no timer to
// serve: what changes with time alone is brought up to date when it is asked for.
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
  void on_nak(Time now);               // a PSN sequence error: something was lost
  void on_timeout(Time now);           // nothing was heard
  void on_sent(u64 octets, Time now);  // as pacing counts them

  // --- outputs
  // Of the next packet.
  [[nodiscard]] Rate rate(Time now);
  // Octets of payload that may be in flight: a packet may go while fewer are.
  [[nodiscard]] u64 window(Time now);
  // Whether the rate falls later, whatever is heard until then. Since rate() was last asked for.
  [[nodiscard]] bool will_slow_down() const;
  // Whether on_ack(), on_nak() and on_timeout() and window() matter.
  [[nodiscard]] bool wants_acks() const;
  // Whether a change of the rate moves a wait that has begun. Only acknowledgements change it then.
  [[nodiscard]] bool moves_waits() const;

  // For those who look on; a copy of the whole will do, and leaves this one as it is.
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
