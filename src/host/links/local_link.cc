#include "host/links/local_link.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bytes.h"
#include "memory/touch.h"

namespace verbena::host {
namespace {

constexpr u32 kBatch = 64;  // frames in a receive()
// While there are frames of this host: looks in vain without a look below; one that finds takes as
// long as kVainLooksOfOne.
constexpr u32 kLooksWithoutBelow = 64;
constexpr u32 kVainLooksOfOne = 4;
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
  const bool is_here = has_peer(slot, to) && to.peer->is_open() && is_at(frame.destination, to);
  return is_here && has_ring(to) ? &to : nullptr;
}

bool LocalLink::is_at(const GID& gid, Outgoing& to) {
  if (to.known == gid) return true;
  const bool has = to.peer->has(gid);
  if (has) to.known = gid;
  return has;
}

// One whose process of the same number is on another host is looked for in vain, now and then.
bool LocalLink::has_peer(u32 slot, Outgoing& to) {
  if (to.peer != nullptr && to.peer->is_alive()) return true;
  to.ring.reset();
  to.peer.reset();
  to.known = {};
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
  if (to == nullptr) {
    has_appended_below_ = called_ = true;  // which may be more than it holds back
    return below_->append(frame);
  }
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
    if (!to.ring || !to.ring->publish() || to.ring->is_watched()) continue;
    if (!to.peer->doorbells().ring(path_.slot())) continue;
    path_.wake(slot);
    called_ = true;
  }
  unflushed_.clear();
  is_urgent_ = false;
  if (!std::exchange(has_appended_below_, false)) return;
  called_ = true;
  below_->flush();
}

// --- in

// A look at sockets costs more than what comes through memory: where that goes on, it is rare.
bool LocalLink::looks_below(Look look, bool found) {
  if (found)
    quiet_looks_ = 0;
  else if (quiet_looks_ < kQuiet)
    ++quiet_looks_;
  looks_since_below_ += found ? kVainLooksOfOne : 1;
  if (look == Look::kLikely && quiet_looks_ < kQuiet && looks_since_below_ < kLooksWithoutBelow)
    return false;
  looks_since_below_ = 0;
  called_ = true;
  return true;
}

// --- the ring that is watched

// Whether any has, or may have, something.
bool LocalLink::look_at_rings() {
  if (watch_.slot != 0 && from_[watch_.slot].ring->has_more()) on_found(watch_.slot);
  return any_rung_ = path_.doorbells().take(rung_) || any_rung_;
}

void LocalLink::note_served(u32 slot) {
  if (slot == watch_.slot) return;
  if (slot != std::exchange(watch_.candidate, slot)) watch_.in_a_row = 0;
  if (++watch_.in_a_row >= kWatched) watch(slot);
}

void LocalLink::watch(u32 slot) {
  unwatch();
  from_[slot].ring->watch();
  watch_ = {.slot = slot};
}

void LocalLink::unwatch() {
  if (watch_.slot == 0) return;
  const u32 slot = std::exchange(watch_, {}).slot;
  FrameRingReader& ring = *from_[slot].ring;
  ring.unwatch();
  if (ring.has_more()) on_found(slot);
}

// Where another has taken the ring over, it may have rung no bell: then all are looked at.
void LocalLink::on_found(u32 slot) {
  any_rung_ = true;
  if (path_.ring_from(slot) == from_[slot].number) {
    rung_[slot / 64] |= u64{1} << slot % 64;
  } else {
    unwatch();
    rung_.fill(~u64{0});
  }
}

bool LocalLink::receive(Look look) {
  batch_left_ = kBatch;
  served_ = word_ = 0;
  const bool found = look_at_rings();
  return (looks_below(look, found) && below_->receive(look)) || found;
}

// nullptr: the peer has claimed none.
FrameRingReader* LocalLink::ring_from(u32 slot) {
  const std::optional<u32> number = is_process_slot(slot) ? path_.ring_from(slot) : std::nullopt;
  if (!number) return nullptr;
  Incoming& from = from_[slot];
  if (!from.ring || from.number != *number) {
    if (slot == watch_.slot) unwatch();
    Expected<Mapping> memory = path_.map_own_ring(*number);
    if (!memory) return nullptr;
    from.number = *number;
    from.memory = std::move(*memory);
    from.ring.emplace(reinterpret_cast<SegmentRing*>(from.memory.data())->frames);
  }
  return &*from.ring;
}

bool LocalLink::poll_frame(IngressFrame& out, Time now) {
  for (; any_rung_ && word_ < Doorbells::kWords && batch_left_ != 0; ++word_) {
    while (rung_[word_] != 0) {
      const u32 slot = word_ * 64 + static_cast<u32>(std::countr_zero(rung_[word_]));
      FrameRingReader* const ring = ring_from(slot);
      if (ring != nullptr && ring->poll(out)) {
        --batch_left_;
        ++received_;
        came_through_memory_ = true;
        if (served_ != slot) note_served(slot);
        served_ = slot;
        return true;
      }
      on_ring_empty(slot);
      rung_[word_] &= rung_[word_] - 1;
    }
  }
  if (word_ == Doorbells::kWords)
    any_rung_ = std::ranges::any_of(rung_, [](u64 word) { return word != 0; });
  came_through_memory_ = false;
  return below_->poll_frame(out, now);
}

void LocalLink::on_ring_empty(u32 slot) {
  if (served_ != slot && is_process_slot(slot)) path_.on_withdrawn_by(slot);
}

bool LocalLink::on_listening(Listening listening) {
  Doorbells& doorbells = path_.doorbells();
  if (listening == Listening::kNo) {
    doorbells.wake();
    return false;
  }
  unwatch();
  doorbells.sleep();
  return any_rung_ = doorbells.take(rung_) || any_rung_;
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
