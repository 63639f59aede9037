#include "transport/rc/ack_signals.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace verbena {

AckSignals::AckSignals(CongestionControl& control, u32 window_packets)
    : control_(control),
      mask_(std::bit_ceil(std::min(window_packets, kFirstRoom)) - 1),
      sent_at_(std::size_t{mask_} + 1, Time::never()) {}

void AckSignals::on_sent(const Sent& sent, Time now) {
  const u32 needed = sent.in_flight + sent.psns;
  if (needed > mask_ + 1) [[unlikely]]
    make_room(sent.psn, sent.in_flight, needed);
  for (u32 i = 0; i < sent.psns; ++i) sent_at(sent.psn.advanced(i)) = i == 0 ? now : Time::never();
}

// Makes room, and keeps the send times of the `in_flight` packets before `end`.
void AckSignals::make_room(PSN end, u32 in_flight, u32 needed) {
  const u32 mask = std::bit_ceil(needed) - 1;
  std::vector<Time> room(std::size_t{mask} + 1, Time::never());
  for (u32 i = 1; i <= in_flight; ++i) {
    const PSN psn(end.value() - i);
    room[psn.value() & mask] = sent_at(psn);
  }
  sent_at_ = std::move(room);
  mask_ = mask;
}

void AckSignals::on_resent(PSN psn, u32 psns) {
  for (u32 i = 0; i < psns; ++i) sent_at(psn.advanced(i)) = Time::never();
}

void AckSignals::on_acknowledged(const Progress& progress, const PathTelemetry* path, Time now) {
  const Time sent = sent_at(progress.unacked.previous());
  control_.on_ack(
      {.acknowledged_bytes = u64{progress.before.distance_to(progress.unacked)} * progress.mtu,
       .in_flight_bytes = u64{progress.in_flight} * progress.mtu,
       .round_trip = sent == Time::never() ? Duration{} : now - sent,
       .path = path},
      now);
}

u32 AckSignals::window_packets(u32 mtu, Time now) {
  const u64 bytes = control_.window(now);
  const u64 packets = bytes / mtu + (bytes % mtu != 0 ? 1 : 0);
  return static_cast<u32>(std::clamp<u64>(packets, 1, std::numeric_limits<u32>::max()));
}

}  // namespace verbena
