// AckRequests: which packets of a requester ask for an ACK (BTH.A). IBTA Vol 1, 9.7.5.1.2. Some
// must ask, because nothing follows that could; this class adds those that are due after a number
// of packets or after a time, so that the window and the queue keep moving and silence does not
// look like loss where a rate limits the packets.
#pragma once

#include "base/time.h"
#include "transport/rc/limits.h"
#include "wire/ib/bth.h"

namespace verbena {

class AckRequests {
 public:
  explicit AckRequests(const RCLimits& limits)
      : interval_(limits.ack_interval),
        period_(limits.path.min_probe_timeout ? *limits.path.min_probe_timeout / 2
                                              : limits.path.ack_request_period) {}

  // All packets in flight will be sent again.
  void restart() { unasked_ = 0; }
  // Nothing is in flight, or a request leaves whose response acknowledges it.
  void restart_period(Time now) { asked_at_ = now; }
  // So many packets of a message leave. Sets `bth.ack_req` if it is time to ask.
  void on_message(BTH& bth, u32 packets, Time now) {
    unasked_ += packets;
    if (!bth.ack_req && unasked_ < interval_ && !is_late(now)) return;
    bth.ack_req = true;
    on_asked(now);
  }
  void on_asked(Time now) {
    unasked_ = 0;
    asked_at_ = now;
  }

  // Returns how many packets may leave as one train, which does not ask.
  [[nodiscard]] u32 room() const { return interval_ - 1 - unasked_; }
  [[nodiscard]] bool is_late(Time now) const { return now - asked_at_ >= period_; }
  // Returns true if no packet of a message has left since the last that asked.
  [[nodiscard]] bool has_asked() const { return unasked_ == 0; }

 private:
  const u32 interval_;  // packets
  const Duration period_;
  u32 unasked_ = 0;  // packets since the last that asked
  Time asked_at_;
};

}  // namespace verbena
