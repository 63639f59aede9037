#include "device/port/pacer.h"

#include <algorithm>

namespace verbena {

void Pacer::begin(QueuePair& qp, const CongestionParameters& parameters) {
  qp.congestion.reset();
  qp.next_send = qp.wait_began = Time();
  qp.wait_bytes = 0;
  if (parameters.controls()) qp.congestion.emplace(parameters);
  qp.paced = qp.congestion.has_value() && !is_free(*qp.congestion, Time());
  qp.wait_moves = qp.congestion.has_value() && qp.congestion->moves_waits();
}

void Pacer::on_cnp(QueuePair& qp, Time now) {
  if (!qp.congestion.has_value()) return;
  qp.congestion->on_cnp(now);
  qp.paced = true;
}

// Nothing but a CNP can slow it down: until then its packets need not be looked at.
bool Pacer::is_free(CongestionControl& congestion, Time now) const {
  return !congestion.wants_acks() && congestion.rate(now) >= config_.unpaced_from &&
         !congestion.will_slow_down();
}

u32 Pacer::counted_bytes(const PacketSize& packet) const {
  switch (config_.counted) {
    case PacingConfig::Counted::kPacket: return packet.bytes + config_.overhead_bytes;
    case PacingConfig::Counted::kPayload: return packet.payload_bytes + config_.overhead_bytes;
  }
  CHECK_UNREACHABLE();
}

void Pacer::on_sent(QueuePair& qp, const PacketSize& packet, Time now) {
  const u32 bytes = counted_bytes(packet);
  qp.congestion->on_sent(bytes, now);
  if (is_free(*qp.congestion, now)) {
    qp.paced = false;
    return;
  }
  qp.wait_began = std::max(qp.next_send, now - config_.burst);
  qp.wait_bytes = bytes;
  qp.next_send = qp.wait_began + wait_after(bytes, qp.congestion->rate(now));
  if (qp.next_send > now) scheduler_.hold(qp, qp.next_send + config_.burst / 2);
}

Duration Pacer::wait_after(u32 bytes, Rate rate) const {
  return rate >= config_.unpaced_from ? Duration{} : transmission_time(rate, bytes, config_.clock);
}

void Pacer::move_wait(QueuePair& qp, Time now) {
  const Time next = qp.wait_began + wait_after(qp.wait_bytes, qp.congestion->rate(now));
  if (next == qp.next_send) return;
  qp.next_send = next;
  if (next > now || scheduler_.holds(qp)) scheduler_.hold(qp, next + config_.burst / 2);
}

}  // namespace verbena
