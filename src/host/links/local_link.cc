#include "host/links/local_link.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bytes.h"
#include "memory/touch.h"

namespace verbena::host {
namespace {

constexpr u32 kBatch = 64;              // frames in a receive()
constexpr u32 kLooksWithoutBelow = 16;  // while there are frames of this host
constexpr u32 kFramesUntilLook = 4096;  // where there was no peer, or no ring
constexpr std::size_t kDestQPAt = 5;    // in BTH
constexpr u8 kServiceMask = 0xe0;       // of the opcode; RC is 0

bool is_rc(const EgressFrame& frame) { return (frame.headers[0] & kServiceMask) == 0; }

// What fails is tried again later.
bool is_due(u32& frames_until_look) {
  if (frames_until_look != 0) {
    --frames_until_look;
    return false;
  }
  frames_until_look = kFramesUntilLook;
  return true;
}

// But for its ICRC.
void write_frame(const EgressFrame& frame, u8* at) {
  const auto add = [&at](Bytes bytes) {
    std::memcpy(at, bytes.data(), bytes.size());
    at += bytes.size();
  };
  add(Bytes(frame.headers).first(frame.headers_size));
  for (u32 i = 0; i < frame.payload.count; ++i) add(frame.payload.parts[i]);
  std::memset(at, 0, frame.pad_count);
}

}  // namespace

// --- out

LocalLink::Outgoing* LocalLink::route_of(const EgressFrame& frame) {
  if (!is_rc(frame) || !path_.is_on()) return nullptr;
  const u32 slot = slot_of(load_be24(frame.headers.data() + kDestQPAt));
  if (!is_process_slot(slot)) return nullptr;
  Outgoing& to = to_[slot];
  const bool is_here = has_peer(slot, to) && to.peer->is_open() && to.peer->has(frame.destination);
  return is_here && has_ring(to) ? &to : nullptr;
}

// One whose process of the same number is on another host is looked for in vain, now and then.
bool LocalLink::has_peer(u32 slot, Outgoing& to) {
  if (to.peer != nullptr && to.peer->is_alive()) return true;
  to.ring.reset();
  to.peer.reset();
  if (!is_due(to.frames_until_look)) return false;
  to.peer = path_.peer(slot);
  if (to.peer != nullptr) to.frames_until_look = 0;
  return to.peer != nullptr;
}

bool LocalLink::has_ring(Outgoing& to) {
  if (to.ring) return true;
  if (!is_due(to.frames_until_look)) return false;
  to.memory = to.peer->claim_ring();
  if (to.memory.data() == nullptr) return false;
  to.ring.emplace(reinterpret_cast<SegmentRing*>(to.memory.data())->frames);
  return true;
}

void LocalLink::append(const EgressFrame& frame) {
  if (has_left_) return;
  Outgoing* const to = route_of(frame);
  if (to == nullptr) return below_->append(frame);
  const MutableBytes room =
      to->ring->add({.size = static_cast<u32>(frame.transport_size() + kICRCSize),
                     .udp_source_port = frame.udp_source_port,
                     .traffic_class = frame.traffic_class,
                     .hop_limit = frame.hop_limit,
                     .source = frame.source,
                     .destination = frame.destination});
  if (room.empty()) {
    ++send_dropped_;
    return;
  }
  if (!touch([&] { write_frame(frame, room.data()); })) return to->ring->take_back();
  ++sent_;
  is_urgent_ |= frame.urgency != Urgency::kWithReply;
  const u32 slot = static_cast<u32>(to - to_.data());
  if (unflushed_.empty() || unflushed_.back() != slot) unflushed_.push_back(slot);
}

void LocalLink::flush() {
  for (const u32 slot : unflushed_) {
    Outgoing& to = to_[slot];
    if (to.ring && to.ring->publish() && to.peer->doorbells().ring(path_.slot())) path_.wake(slot);
  }
  unflushed_.clear();
  is_urgent_ = false;
  below_->flush();
}

// --- in

bool LocalLink::any_rung() const {
  return std::ranges::any_of(rung_, [](u64 word) { return word != 0; });
}

// A look at sockets costs more than what comes through memory: where that goes on, it is rare.
bool LocalLink::looks_below(Look look, bool found) {
  if (found)
    quiet_looks_ = 0;
  else if (quiet_looks_ < kQuiet)
    ++quiet_looks_;
  if (look == Look::kLikely && quiet_looks_ < kQuiet && ++looks_since_below_ < kLooksWithoutBelow)
    return false;
  looks_since_below_ = 0;
  return true;
}

bool LocalLink::receive(Look look) {
  batch_left_ = kBatch;
  served_ = 0;
  const bool found = path_.doorbells().take(rung_) || any_rung();
  return (looks_below(look, found) && below_->receive(look)) || found;
}

// nullptr: the peer has claimed none.
FrameRingReader* LocalLink::ring_from(u32 slot) {
  const std::optional<u32> number = is_process_slot(slot) ? path_.ring_from(slot) : std::nullopt;
  if (!number) return nullptr;
  Incoming& from = from_[slot];
  if (!from.ring || from.number != *number) {
    Expected<Mapping> memory = path_.map_own_ring(*number);
    if (!memory) return nullptr;
    from.number = *number;
    from.memory = std::move(*memory);
    from.ring.emplace(reinterpret_cast<SegmentRing*>(from.memory.data())->frames);
  }
  return &*from.ring;
}

bool LocalLink::poll_frame(IngressFrame& out, Time now) {
  for (u32 word = 0; word < Doorbells::kWords && batch_left_ != 0; ++word) {
    while (rung_[word] != 0) {
      const u32 slot = word * 64 + static_cast<u32>(std::countr_zero(rung_[word]));
      FrameRingReader* const ring = ring_from(slot);
      if (ring != nullptr && ring->poll(out)) {
        --batch_left_;
        ++received_;
        came_through_memory_ = true;
        served_ = slot;
        return true;
      }
      on_ring_empty(slot);
      rung_[word] &= rung_[word] - 1;
    }
  }
  came_through_memory_ = false;
  return below_->poll_frame(out, now);
}

void LocalLink::on_ring_empty(u32 slot) {
  if (served_ != slot) path_.on_withdrawn_by(slot);
}

bool LocalLink::on_listening(Listening listening) {
  Doorbells& doorbells = path_.doorbells();
  if (listening == Listening::kNo) {
    doorbells.wake();
    return false;
  }
  doorbells.sleep();
  return doorbells.take(rung_) || any_rung();
}

void LocalLink::leave() {
  has_left_ = true;
  below_->leave();
}

void LocalLink::abandon() {
  has_left_ = true;
  below_->abandon();
}

const LinkCounters& LocalLink::counters() const {
  counters_ = below_->counters();
  counters_.sent_frames += sent_;
  counters_.send_dropped += send_dropped_;
  counters_.received_frames += received_;
  return counters_;
}

}  // namespace verbena::host
