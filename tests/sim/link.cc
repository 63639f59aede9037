#include "tests/sim/link.h"

#include "wire/eth/ecn.h"
#include "wire/roce/icrc.h"

namespace verbena::sim {
namespace {

// Ethernet 14 + 4, preamble and gap 20, IP and UDP 28 (IPv4): what a frame costs besides.
constexpr i64 kOverheadBytes = 66;
// FECN, BECN and the reserved bits beside them: the ICRC does not cover this byte. A17.3.3
constexpr std::size_t kMaskedByte = 4;

}  // namespace

Frame Frame::of(const EgressFrame& egress, u16 identification) {
  Frame frame;
  frame.source = egress.source;
  frame.destination = egress.destination;
  frame.udp_source_port = egress.udp_source_port;
  frame.identification = identification;
  frame.traffic_class = egress.traffic_class;
  frame.hop_limit = egress.hop_limit;
  std::vector<u8>& bytes = frame.transport;
  bytes.reserve(egress.transport_size() + kICRCSize);
  bytes.assign(egress.headers.begin(), egress.headers.begin() + egress.headers_size);
  for (u32 i = 0; i < egress.payload.count; ++i)
    bytes.insert(bytes.end(), egress.payload.parts[i].begin(), egress.payload.parts[i].end());
  bytes.resize(bytes.size() + egress.pad_count);
  CHECK(bytes.size() == egress.transport_size());
  const u32 icrc = icrc_of({.source = frame.source,
                            .destination = frame.destination,
                            .udp_source_port = frame.udp_source_port,
                            .identification = identification},
                           bytes);
  bytes.resize(bytes.size() + kICRCSize);
  store_icrc(icrc, std::span(bytes).last<kICRCSize>());
  return frame;
}

IngressFrame Frame::view() const {
  return {.source = source,
          .destination = destination,
          .udp_source_port = udp_source_port,
          .traffic_class = traffic_class,
          .hop_limit = hop_limit,
          .identification_known = identification_known,
          .identification = identification,
          .transport = transport};
}

Duration Link::duration_of(const Frame& frame) const {
  return ps(config_.rate.ps_per_byte * (static_cast<i64>(frame.transport.size()) + kOverheadBytes));
}

Time Link::arrival(Time sent, bool late) {
  Time at = sent + config_.delay;
  if (late)
    at =
        at + ps(static_cast<i64>(prng_.in(1, static_cast<u64>(config_.faults.reorder_delay.ps()))));
  const i64 grid = config_.coalesce.ps();
  return grid == 0 ? at : Time::from_ps((at.ps() + grid - 1) / grid * grid);
}

// The CRC finds any three wrong bits, when it need not guess the Identification.
void Link::corrupt(Frame& frame) {
  ++counters_.corrupted;
  frame.identification_known = true;
  std::vector<u8>& bytes = frame.transport;
  if (prng_.chance(0.1)) {
    bytes.resize(prng_.below(bytes.size()));
    return;
  }
  const std::vector<u8> before = bytes;
  while (bytes == before)
    for (u64 flips = prng_.in(1, 3); flips != 0; --flips) {
      const std::size_t at = prng_.below(bytes.size());
      if (at != kMaskedByte) bytes[at] ^= static_cast<u8>(1u << prng_.below(8));
    }
}

Fate Link::drop() {
  ++counters_.frames;
  ++counters_.lost;
  return Fate::kLost;
}

Fate Link::transmit(Frame frame, Time sent, std::vector<Arrival>& arrivals) {
  const Faults& faults = config_.faults;
  ++counters_.frames;
  if (prng_.chance(faults.loss)) {
    ++counters_.lost;
    return Fate::kLost;
  }
  Fate fate = Fate::kSent;
  frame.identification_known = config_.identification == Identification::kKnown;
  if (config_.identification == Identification::kGuessedWrong)
    frame.identification = static_cast<u16>(frame.identification + 1);
  if (prng_.chance(faults.mark)) {
    ++counters_.marked;
    fate = Fate::kMarked;
    frame.traffic_class = traffic_class_of(dscp_of(frame.traffic_class), ECN::kCE);
  }
  if (prng_.chance(faults.duplicate)) {
    ++counters_.copied;
    fate = Fate::kCopied;
    arrivals.push_back({arrival(sent, true), frame});
  }
  const bool late = prng_.chance(faults.reorder);
  if (late) {
    ++counters_.late;
    fate = Fate::kLate;
  }
  if (prng_.chance(faults.corrupt)) {
    if (config_.identification == Identification::kGuessedWrong)
      frame.identification = static_cast<u16>(frame.identification - 1);
    corrupt(frame);
    fate = Fate::kCorrupted;
  }
  arrivals.push_back({arrival(sent, late), std::move(frame)});
  return fate;
}

}  // namespace verbena::sim
