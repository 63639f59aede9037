#include "host/links/burst_assembler.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "host/links/frame_codec.h"
#include "memory/touch.h"

namespace verbena::host {
namespace {

// Headers, the parts of its payload, pad and ICRC, with a gathered part between any two.
u32 max_iovs_of(const EgressFrame& frame) { return 2u * frame.payload.count + 1; }

constexpr u32 kNone = ~0u;
constexpr u32 kShort = 64;  // copying such a segment is quicker than one more iovec

u32 udp_size_of(const EgressFrame& frame) {
  return static_cast<u32>(frame.transport_size() + kICRCSize);
}

u16 number_of(const SourcePort* port, const EgressFrame& frame) {
  return port != nullptr ? port->number() : frame.udp_source_port;
}

bool same_path(const Burst& burst, const EgressFrame& frame, const SourcePort* port) {
  return burst.port == port && burst.udp_source_port == number_of(port, frame) &&
         burst.traffic_class == frame.traffic_class && burst.hop_limit == frame.hop_limit &&
         burst.destination == frame.destination;
}

bool takes(const Burst& burst, u32 udp_size) {
  const u32 longer = std::max(udp_size, burst.segment_size);
  return !burst.closed && (udp_size <= burst.segment_size || burst.yields) &&
         longer <= burst.max_segment_size && burst.segments < BurstAssembler::kMaxSegments &&
         burst.bytes + udp_size <= BurstAssembler::kMaxBurstBytes;
}

RoCEv2Envelope envelope_of(const Burst& burst, u32 place) {
  return {.source = burst.source,
          .destination = burst.destination,
          .udp_source_port = burst.udp_source_port,
          .identification = static_cast<u16>(burst.identification + place)};
}

}  // namespace

BurstAssembler::BurstAssembler()
    : rooms_(std::make_unique_for_overwrite<std::array<Room, kMaxBursts>>()) {}

void BurstAssembler::clear() {
  burst_count_ = pending_bytes_ = 0;
  may_wait_ = true;
}

bool BurstAssembler::has_room(const Room& room, const EgressFrame& frame, u32 udp_size) {
  return udp_size + kMaxHeadersSize <= room.staging.size() - room.staged &&
         max_iovs_of(frame) <= kMaxIOVs - room.iov_count;
}

// Returns the number of packets of the train, if the burst takes one of that size.
u32 BurstAssembler::packets_for(const Burst& burst, const Room& room, const EgressFrame& frame,
                                u32 udp_size) {
  // One that is shorter is the last, and a longer one goes before the others.
  if (udp_size != burst.segment_size || udp_size > burst.max_segment_size) return 1;
  const std::size_t staging_left = room.staging.size() - room.staged - kMaxHeadersSize;
  return std::min({static_cast<u32>(staging_left) / udp_size,
                   (kMaxIOVs - room.iov_count) / max_iovs_of(frame), kMaxSegments - burst.segments,
                   (kMaxBurstBytes - burst.bytes) / udp_size});
}

BurstAssembler::Append BurstAssembler::append(const EgressFrame& frame, SourcePort* port,
                                              u32 max_segment_size, u32& done,
                                              Encapsulation* around) {
  const u32 overhead = around == nullptr ? 0 : static_cast<u32>(around->overhead());
  const u32 udp_size = udp_size_of(frame) + overhead;
  CHECK(udp_size <= kMaxTransportSize + kICRCSize);
  const u32 bursts_before = burst_count_;
  u32 index = find(frame, port, udp_size);
  if (index == kNone) index = begin(frame, port, max_segment_size, udp_size);
  if (index == kNone) return Append::kFull;
  Burst& burst = bursts_[index];
  Room& room = (*rooms_)[index];
  const bool overtakes = udp_size > burst.segment_size;
  const u32 left = frame.packets - done;
  const u32 packets = left == 1 ? 1 : std::min(left, packets_for(burst, room, frame, udp_size));
  if (!(overtakes ? overtake(burst, room, frame, done, around)
                  : follow(burst, room, frame, done, packets, around))) {
    if (burst_count_ != bursts_before) take_back_last();
    return Append::kGone;
  }
  done += packets;
  burst.iovs = std::span(room.iovs).first(room.iov_count);
  burst.closed = udp_size != burst.segment_size;
  burst.is_encapsulated = around != nullptr;
  burst.yields = burst.segments == 0 && frame.urgency == Urgency::kWithReply;
  if (burst.yields) burst.first_icrc_flip = frame.icrc_flip;
  burst.segment_size = std::max(burst.segment_size, udp_size);
  burst.bytes += packets * udp_size;
  pending_bytes_ += packets * udp_size;
  burst.segments += packets;
  may_wait_ = may_wait_ && frame.urgency != Urgency::kNow && burst.segments < kMaxSegments;
  return Append::kAdded;
}

// Both false when the payload is gone; then nothing has changed.
bool BurstAssembler::follow(const Burst& burst, Room& room, const EgressFrame& frame, u32 from,
                            u32 packets, Encapsulation* around) {
  const u32 iovs_before = room.iov_count, staged_before = room.staged;
  const std::size_t last_size = iovs_before == 0 ? 0 : room.iovs[iovs_before - 1].iov_len;
  const bool there = touch([&] {
    for (u32 i = 0; i < packets; ++i)
      write_segment(burst, burst.segments + i, room, frame, from + i, around);
  });
  if (there) return true;
  room.iov_count = iovs_before;
  room.staged = staged_before;
  if (iovs_before != 0) room.iovs[iovs_before - 1].iov_len = last_size;
  return false;
}

bool BurstAssembler::overtake(const Burst& burst, Room& room, const EgressFrame& frame, u32 packet,
                              Encapsulation* around) {
  const iovec overtaken = room.iovs[0];
  const u32 staged_before = room.staged;
  room.iov_count = 0;
  if (!touch([&] { write_segment(burst, 0, room, frame, packet, around); })) {
    room.iovs[0] = overtaken;
    room.iov_count = 1;
    room.staged = staged_before;
    return false;
  }
  const std::span<u8> segment(static_cast<u8*>(overtaken.iov_base), overtaken.iov_len);
  if (around == nullptr) make_icrc_of_second(burst, segment);
  const std::span<u8> behind = std::span(room.staging).subspan(room.staged);
  if (segment.size() > std::min<std::size_t>(kShort, behind.size())) {
    refer(room, segment);
    return true;
  }
  std::ranges::copy(segment, behind.begin());
  stage(room, behind.first(segment.size()));
  return true;
}

// The place in the burst changes the ICRC, except that of an encapsulated packet.
void BurstAssembler::make_icrc_of_second(const Burst& burst, std::span<u8> segment) {
  const std::span<const u8> transport = segment.first(segment.size() - kICRCSize);
  store_icrc(icrc_of(flow_, envelope_of(burst, 1), transport) ^ burst.first_icrc_flip,
             segment.last<kICRCSize>());
}

// The burst that the frame may join: only the newest of its path, which keeps it in order.
u32 BurstAssembler::find(const EgressFrame& frame, const SourcePort* port, u32 udp_size) const {
  for (u32 i = burst_count_; i-- > 0;) {
    if (!same_path(bursts_[i], frame, port)) continue;
    const bool fits = takes(bursts_[i], udp_size) && has_room((*rooms_)[i], frame, udp_size);
    return fits ? i : kNone;
  }
  return kNone;
}

u32 BurstAssembler::begin(const EgressFrame& frame, SourcePort* port, u32 max_segment_size,
                          u32 udp_size) {
  if (burst_count_ == kMaxBursts || pending_bytes_ >= kEnoughBytes) return kNone;
  Room& room = (*rooms_)[burst_count_];
  room.iov_count = room.staged = 0;
  bursts_[burst_count_] = {.port = port,
                           .source = frame.source,
                           .destination = frame.destination,
                           .udp_source_port = number_of(port, frame),
                           .identification = port != nullptr ? port->take_identification() : u16{0},
                           .traffic_class = frame.traffic_class,
                           .hop_limit = frame.hop_limit,
                           .max_segment_size = max_segment_size,
                           .segment_size = udp_size,
                           .iovs = {}};
  return burst_count_++;
}

void BurstAssembler::take_back_last() {
  SourcePort* const port = bursts_[--burst_count_].port;
  if (port != nullptr) port->give_back();
}

// As the segment at `place` in the burst; `packet`: of a train.
void BurstAssembler::write_segment(const Burst& burst, u32 place, Room& room,
                                   const EgressFrame& frame, u32 packet, Encapsulation* around) {
  struct Sink {
    BurstAssembler& assembler;
    Room& room;
    bool is_stable;
    [[nodiscard]] bool gathers(Bytes part) const {
      return is_stable && part.size() >= kMinGatherBytes;
    }
    void refer(Bytes part) {
      assembler.refer(room, part);
      assembler.may_wait_ = false;
    }
    void take(std::span<u8> written) { assembler.stage(room, written); }
  } sink{*this, room, frame.payload_is_stable};
  RoCEv2Envelope envelope = envelope_of(burst, place);
  if (around != nullptr) envelope.identification = 0;
  const ICRC icrc(flow_.of(envelope, frame.transport_size()));
  u8* const begin = room.staging.data() + room.staged;
  if (around == nullptr)
    encode_frame(frame, packet, icrc, begin, sink);
  else
    sink.take(encode_encapsulated(frame, packet, icrc, *around, burst.udp_source_port, begin));
}

// Sends `bytes` next. They were just written to the end of the staged bytes.
void BurstAssembler::stage(Room& room, std::span<const u8> bytes) {
  if (bytes.empty()) return;  // between two parts that are sent from where they lie
  room.staged += static_cast<u32>(bytes.size());
  if (room.iov_count != 0) {
    iovec& last = room.iovs[room.iov_count - 1];
    if (static_cast<u8*>(last.iov_base) + last.iov_len == bytes.data()) {
      last.iov_len += bytes.size();
      return;
    }
  }
  refer(room, bytes);
}

void BurstAssembler::refer(Room& room, std::span<const u8> part) {
  room.iovs[room.iov_count++] = {.iov_base = const_cast<u8*>(part.data()), .iov_len = part.size()};
}

}  // namespace verbena::host
