#include "transport/rc/ack_signals.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace verbena {

AckSignals::AckSignals(CongestionControl& control, u32 window_packets)
    : control_(control),
      mask_(std::bit_ceil(window_packets) - 1),
      sent_at_(std::size_t{mask_} + 1, Time::never()) {}

void AckSignals::on_sent(PSN psn, u32 psns, Time now) {
  for (u32 i = 0; i < psns; ++i) sent_at(psn.advanced(i)) = i == 0 ? now : Time::never();
}

void AckSignals::on_resent(PSN psn, u32 psns) {
  for (u32 i = 0; i < psns; ++i) sent_at(psn.advanced(i)) = Time::never();
}

void AckSignals::on_acknowledged(const Progress& progress, const PathTelemetry* path, Time now) {
  const Time sent = sent_at(progress.unacked.previous());
  control_.on_ack(
      {.acknowledged_octets = u64{progress.before.distance_to(progress.unacked)} * progress.mtu,
       .in_flight_octets = u64{progress.in_flight} * progress.mtu,
       .round_trip = sent == Time::never() ? Duration{} : now - sent,
       .path = path},
      now);
}

u32 AckSignals::window_packets(u32 mtu, Time now) {
  const u64 octets = control_.window(now);
  const u64 packets = octets / mtu + (octets % mtu != 0 ? 1 : 0);
  return static_cast<u32>(std::clamp<u64>(packets, 1, std::numeric_limits<u32>::max()));
}

}  // namespace verbena
