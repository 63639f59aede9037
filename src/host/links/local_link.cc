#include "host/links/local_link.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "device/port/frame_check.h"
#include "host/local/ring_headers.h"

namespace verbena::host {
namespace {

constexpr u32 kBatch = 64;  // packets in a receive()
// While there are frames of this host: looks in vain without a look below, and at most, where one
// after the other has found nothing there; one that finds takes as long as kVainLooksOfOne.
constexpr u32 kLooksWithoutBelow = 64, kMaxLooksWithoutBelow = 1024;
constexpr u32 kVainLooksOfOne = 4;

// Returns false if a payload of so many bytes is not that of so many packets of equal size.
bool is_train_of(u32 packets, std::size_t bytes) {
  return packets != 0 && packets <= kLongestTrain && bytes % packets == 0;
}

}  // namespace

// --- out

void LocalLink::append(const EgressFrame& frame) {
  if (has_left_) return;
  if (takes_all(frame)) return;
  has_appended_below_ = called_ = true;  // which may be more than it holds back
  below_->append(frame);
}

// A peer that takes the first of a train takes it all, or it is lost.
bool LocalLink::takes_all(const EgressFrame& frame) {
  if (frame.packets == 1) return path_.outgoing().take(frame);
  if (!path_.outgoing().take(frame.frame_of(0))) return false;
  for (u32 i = 1; i < frame.packets; ++i) (void)path_.outgoing().take(frame.frame_of(i));
  return true;
}

void LocalLink::flush() {
  path_.outgoing().publish();
  if (!std::exchange(has_appended_below_, false)) return;
  called_ = true;
  below_->flush();
}

// --- in

// A look at sockets costs as much as a message through memory. So it is rare while such messages go
// on, and rarer if it is in vain. A frame on a socket then waits no longer than the time without
// frames before it.
bool LocalLink::looks_below(Look look, bool found) {
  if (found)
    quiet_looks_ = 0;
  else if (quiet_looks_ < kQuiet)
    ++quiet_looks_;
  looks_since_below_ += found ? kVainLooksOfOne : 1;
  if (look == Look::kLikely && quiet_looks_ < kQuiet && looks_since_below_ < looks_without_below_)
    return false;
  looks_since_below_ = 0;
  called_ = true;
  return true;
}

// --- the ring that is watched

// Whether any has, or may have, something.
bool LocalLink::look_at_rings() {
  if (watch_.slot != 0) {
    const bool found = from_[watch_.slot].ring->has_more();
    if (found) on_found(watch_.slot);
    watch_.streams = found && watch_.found_last;
    watch_.found_last = found;
  }
  any_rung_ = path_.doorbells().take(rung_) || any_rung_;
  return any_rung_ || watch_.has_more;
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
  if (ring.has_more()) note_rung(slot);
}

void LocalLink::note_rung(u32 slot) {
  any_rung_ = true;
  rung_[slot / 64] |= u64{1} << slot % 64;
}

// Where another has taken the ring over, it may have rung no bell: then all are looked at.
void LocalLink::on_found(u32 slot) {
  watch_.has_more = path_.ring_from(slot) == from_[slot].number;
  if (watch_.has_more) return;
  unwatch();
  any_rung_ = true;
  rung_.fill(~u64{0});
}

bool LocalLink::receive(Look look) {
  batch_left_ = kBatch;
  served_ = word_ = 0;
  const bool found = look_at_rings();
  asks_below_ = looks_below(look, found);
  if (!asks_below_) return found;
  const bool found_below = below_->receive(look);
  looks_without_below_ =
      found_below ? kLooksWithoutBelow : std::min(2 * looks_without_below_, kMaxLooksWithoutBelow);
  return found_below || found;
}

// Returns nullptr if the peer has claimed no ring.
FrameRingReader* LocalLink::ring_from(u32 slot) {
  const std::optional<u32> number = is_process_slot(slot) ? path_.ring_from(slot) : std::nullopt;
  if (!number) return nullptr;
  Incoming& from = from_[slot];
  if (!from.ring || from.number != *number) {
    if (slot == watch_.slot) unwatch();
    Expected<Mapping> memory = path_.map_own_ring(*number);
    if (!memory) return nullptr;
    from.ring.reset();
    from.number = *number;
    from.memory = std::move(*memory);
    from.ring.emplace(reinterpret_cast<SegmentRing*>(from.memory.data())->frames);
  }
  return &*from.ring;
}

// Returns the packet of a record, or nullptr if the record is invalid and is to be dropped as any
// such frame. If the headers are in the record, the payload stays there, too: the peer can change
// only its own data meanwhile. All else is copied before it is checked.
const PacketView* LocalLink::decode(const FrameRingReader::Record& record, IngressFrame& out) {
  const auto& [header, addresses, body] = record;
  out.transport = {};
  out.packets = 1;
  if ((header.headers.flags & RingHeaders::kAreHere) != 0) {
    if (!from_ring(header.headers, packet_.headers)) return nullptr;
    if (!is_train_of(header.packets, body.size())) return nullptr;
    packet_.payload = body;
    out.packets = header.packets;
    const std::size_t padded = (body.size() / out.packets + 3) & ~std::size_t{3};
    const std::size_t size = packet_.headers.size() + padded + kICRCSize;
    out.transport = Bytes(copy_).first(std::min(size, copy_.size()));
    return &packet_;
  }
  if (body.size() <= kICRCSize || body.size() > copy_.size()) return nullptr;
  std::memcpy(copy_.data(), body.data(), body.size());
  out.transport = Bytes(copy_).first(body.size());
  const std::optional<PacketView> packet = PacketView::decode(without_icrc(out));
  if (!packet) return nullptr;
  packet_ = *packet;
  return &packet_;
}

bool LocalLink::take_record(FrameRingReader& ring, IngressFrame& out) {
  if (!ring.poll(record_)) return false;
  const FrameRing::Header& header = record_.header;
  out.source = record_.addresses.source;
  out.destination = record_.addresses.destination;
  out.type = GIDType::kRoCEv2;
  out.udp_source_port = header.udp_source_port;
  out.traffic_class = header.traffic_class;
  out.hop_limit = header.hop_limit;
  decoded_ = decode(record_, out);
  out.authenticated = false;
  const bool brings = brought_by(header.headers, brought_);
  out.acknowledgement = brings ? &brought_ : nullptr;
  batch_left_ -= std::min(batch_left_, out.packets);
  received_ += out.packets + (brings ? 1 : 0);
  return true;
}

// Half of the batch is for those that rang.
bool LocalLink::poll_watched(IngressFrame& out) {
  const u32 kept = any_rung_ ? kBatch / 2 : 0;
  FrameRingReader& ring = *from_[watch_.slot].ring;
  const bool taken = batch_left_ > kept && take_record(ring, out);
  watch_.has_more = taken && (watch_.streams || ring.follows());
  return taken;
}

bool LocalLink::poll_rung(IngressFrame& out) {
  for (; word_ < Doorbells::kWords && batch_left_ != 0; ++word_) {
    while (rung_[word_] != 0) {
      const u32 slot = word_ * 64 + static_cast<u32>(std::countr_zero(rung_[word_]));
      FrameRingReader* const ring = ring_from(slot);
      if (ring != nullptr && take_record(*ring, out)) {
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
  return false;
}

bool LocalLink::poll_frame(IngressFrame& out, Time now) {
  if ((watch_.has_more && poll_watched(out)) || (any_rung_ && poll_rung(out))) return true;
  if (!std::exchange(asks_below_, true)) return false;
  decoded_ = nullptr;
  out.acknowledgement = nullptr;
  out.packets = 1;
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
  path_.outgoing().close();
  below_->leave();
}

void LocalLink::abandon() {
  has_left_ = true;
  path_.outgoing().close();
  below_->abandon();
}

const LinkCounters& LocalLink::counters() const {
  counters_ = below_->counters();
  counters_.sent_frames += path_.outgoing().sent();
  counters_.send_dropped += path_.outgoing().dropped();
  counters_.received_frames += received_;
  return counters_;
}

}  // namespace verbena::host
