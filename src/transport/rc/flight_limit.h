// FlightLimit: how many packets of a requester may be in flight: the window of its own, its share
// of all requesters' (transport/shared_window.h), and the window of congestion control.
// Acknowledgements and losses are told to it, and it tells those that congestion control wants to
// know.
#pragma once

#include <optional>

#include "transport/engine.h"
#include "transport/rc/ack_signals.h"
#include "transport/rc/limits.h"
#include "transport/rc/loss_window.h"
#include "transport/rc/send_window.h"

namespace verbena {

class FlightLimit {
 public:
  FlightLimit(const EngineParts& parts, const RCLimits& limits);

  // RTS. `window`: packets.
  void begin(u32 window, PSN first);
  // Returns how many packets may be in flight.
  [[nodiscard]] u32 packets(u32 mtu, Time now) {
    const u32 packets = share_.packets(window_.packets());
    return signals_ ? std::min(packets, signals_->window_packets(mtu, now)) : packets;
  }
  // Returns true if no loss has closed the requester's own window.
  [[nodiscard]] bool is_open() const { return window_.is_open(); }
  // Returns true if congestion control wants an ACK for each packet.
  [[nodiscard]] bool wants_acks() const { return signals_.has_value(); }
  // Whether responses are missing: then the requester counts among those that share.
  void note_waiting(bool waits) { share_.note(waits); }

  // Packets from the window's cursor on leave for the first time.
  void on_sent(const SendWindow& window, u32 psns, Time now) {
    if (signals_) signals_->on_sent({window.cursor(), psns, window.in_flight()}, now);
  }
  void on_resent(PSN psn, u32 psns) {
    if (signals_) signals_->on_resent(psn, psns);
  }
  void on_acknowledged(u32 psns) { window_.on_acknowledged(psns); }
  // A response has acknowledged all from `before` to window.unacked().
  void on_response(const SendWindow& window, PSN before, u32 mtu, const PathTelemetry* path,
                   Time now);
  // A packet is lost, or the path has become slow.
  void on_loss() {
    if (response_ == LossResponse::kHalveWindow) window_.on_loss();
  }
  void on_nak(Time now);
  void on_timeout(Time now);
  // Selective repeat sends so many packets again. The losses of one round trip are one event for
  // congestion control, and close the window only if they are many.
  void on_selective_repeat(const SendWindow& window, u32 psns, Time now);

 private:
  const LossResponse response_;
  LossWindow window_;
  WindowShare share_;
  std::optional<AckSignals> signals_;  // nullopt: no congestion control needs them
  PSN event_end_;                      // the losses before it count as one event
  u32 event_losses_ = 0;               // packets
};

}  // namespace verbena
