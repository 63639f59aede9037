// RCWorkload: how a work request is drawn, and what the model expects of it.
#include <algorithm>
#include <cstring>

#include "tests/sim/rc_workload.h"

namespace verbena::sim {
namespace {

std::vector<u8> copy(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

std::vector<u8> bytes_of(u64 word) {
  std::vector<u8> bytes(sizeof word);
  std::memcpy(bytes.data(), &word, sizeof word);
  return bytes;
}

// `total` cut into 1 .. `most` pieces, empty ones among them.
std::vector<u32> cut(PRNG& prng, u32 total, u32 most) {
  std::vector<u32> pieces;
  for (u64 left = prng.below(most); left != 0; --left) {
    pieces.push_back(static_cast<u32>(prng.below(u64{total} + 1)));
    total -= pieces.back();
  }
  pieces.push_back(total);
  return pieces;
}

}  // namespace

u32 RCWorkload::draw_length() {
  const u32 most = plan_.max_bytes;
  const u64 kind = prng_.below(10);
  if (kind == 0) return 0;
  if (kind < 4) return static_cast<u32>(prng_.in(1, std::min(most, 64u)));
  if (kind < 7) {  // at the edges of packets
    const u64 edge = 256 * prng_.in(1, 20);
    return static_cast<u32>(std::min<u64>(most, edge + prng_.below(3) - 1));
  }
  return static_cast<u32>(prng_.in(0, most));
}

// A request that returns data needs a place for it. Without one the function builds a WRITE.
void RCWorkload::build_some(End& end, Request& r) {
  const u64 kind = prng_.below(100);
  const bool can_land = !end.site->free_slots.empty();
  if (kind < 10 && !plan_.xrc && build_window(end, r)) return;
  if (kind < 35) return build_send(end, r);
  if (kind < 60 || !can_land) return build_write(end, r);
  if (kind < 63) return build_flush(end, r);
  if (kind < 66) return build_atomic_write(end, r);
  if (kind < 85) return build_read(end, r);
  build_atomic(end, r);
}

RCWorkload::Request RCWorkload::build(End& end) {
  Request r;
  r.wr.wr_id = u64{end.index} << kEndShift | end.next_wr_id++;
  r.wr.solicited = prng_.chance(0.2);
  r.wr.fence = prng_.chance(0.05);
  build_some(end, r);
  if (plan_.xrc) r.wr.xrc_srq = end.peer->site->node.device().number_of(end.peer->site->srq);
  --end.left;
  // A full queue must hold a signaled request, and so must the last: else no completion wakes us.
  const u32 most_unsignaled = (plan_.send_depth - 1) / 2;
  r.wr.signaled =
      r.wr.signaled || prng_.chance(0.4) || end.left == 0 || end.since_signaled >= most_unsignaled;
  end.since_signaled = r.wr.signaled ? 0 : end.since_signaled + 1;
  return r;
}

// SGEs over random parts of the source, of up to `limit` bytes in all; what they hold.
std::vector<u8> RCWorkload::gather(End& end, Request& r, u32 limit) {
  Site& site = *end.site;
  const u32 length = std::min(draw_length(), limit);
  r.wr.inline_data = length <= plan_.max_inline_bytes && prng_.chance(0.5);
  std::vector<u8> all;
  std::vector<u32> pieces = cut(prng_, length, plan_.max_sge);
  const u32 largest = *std::ranges::max_element(pieces);
  if (largest > kSourceBytes) {  // a large message is made of few equal ones where it can be
    pieces.assign(plan_.max_sge, static_cast<u32>(kSourceBytes));
    u64 left = length;
    for (u32& piece : pieces) {
      piece = static_cast<u32>(std::min<u64>(left, kSourceBytes));
      left -= piece;
    }
  }
  for (const u32 piece : pieces) {
    const u64 offset = site.source.offset + prng_.below(kSourceBytes - piece + 1);
    const u64 address = r.wr.inline_data ? reinterpret_cast<u64>(site.arena.host_pointer(offset))
                                         : site.arena.address(offset);
    r.sges.push_back({address, piece, site.source_keys.l_key});
    const Bytes bytes = site.arena.actual(offset, piece);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

void RCWorkload::build_send(End& end, Request& r) {
  Message message;
  message.data = gather(end, r, plan_.max_bytes);
  message.byte_length = static_cast<u32>(message.data.size());
  r.wr.op = SendOp::kSend;
  if (prng_.chance(0.3)) {
    r.wr.op = SendOp::kSendWithImmediate;
    r.wr.immediate = static_cast<u32>(prng_.next());
    message.immediate = r.wr.immediate;
  } else if (!end.lent.empty() && prng_.chance(0.5)) {
    r.wr.op = SendOp::kSendWithInvalidate;
    r.wr.invalidate = end.lent.front();
    end.lent.pop_front();
    message.invalidated = r.wr.invalidate.value;
  }
  r.data = std::move(message.data);
  message.data = *r.data;
  end.messages.push_back(std::move(message));
}

void RCWorkload::build_write(End& end, Request& r) {
  const std::vector<u8> data = gather(end, r, plan_.max_bytes);
  const Range to = {end.zone.offset + prng_.below(end.zone.length - data.size() + 1), data.size()};
  r.wr.op = SendOp::kRDMAWrite;
  r.wr.remote_address = end.peer->site->arena.address(to.offset);
  r.wr.r_key = end.zone_key;
  if (!end.lent.empty() && prng_.chance(0.5)) r.wr.r_key = end.lent[prng_.below(end.lent.size())];
  if (reads_now(end, to)) r.wr.fence = true;
  for (Message& earlier : end.messages)
    if (earlier.written.overlaps(to)) earlier.overwritten = true;
  end.peer->site->arena.expect(to.offset, data);
  if (!prng_.chance(0.3)) return;
  r.wr.op = SendOp::kRDMAWriteWithImmediate;
  r.wr.immediate = static_cast<u32>(prng_.next());
  Message message;
  message.op = CompletionOp::kReceiveRDMAWithImmediate;
  message.byte_length = static_cast<u32>(data.size());
  message.immediate = r.wr.immediate;
  message.data = data;
  message.written = to;
  end.messages.push_back(std::move(message));
}

bool RCWorkload::reads_now(const End& end, const Range& range) const {
  return std::ranges::any_of(end.requests,
                             [&](const Request& r) { return r.remote.overlaps(range); });
}

void RCWorkload::build_read(End& end, Request& r) {
  Site& peer = *end.peer->site;
  const bool from_source = prng_.chance(0.4);
  const Range from = from_source ? peer.source : end.zone;
  const u32 length = static_cast<u32>(std::min<u64>(draw_length(), from.length));
  r.remote = {from.offset + prng_.below(from.length - length + 1), length};
  r.wr.op = SendOp::kRDMARead;
  r.wr.remote_address = peer.arena.address(r.remote.offset);
  r.wr.r_key = from_source ? peer.source_keys.r_key : end.zone_key;
  r.data = copy(peer.arena.expected(r.remote.offset, length));
  land(end, r, length);
}

void RCWorkload::build_atomic(End& end, Request& r) {
  Site& peer = *end.peer->site;
  land(end, r, 8);
  r.wr.swap_or_add = prng_.next();
  if (prng_.chance(0.3)) {  // the counter of all ends: only the sum is known
    r.wr.op = SendOp::kFetchAdd;
    r.wr.remote_address = peer.arena.address(peer.shared_word.offset);
    r.wr.r_key = peer.shared_key;
    peer.arena.expect_word(peer.shared_word.offset,
                           peer.arena.expected_word(peer.shared_word.offset) + r.wr.swap_or_add);
    return;
  }
  const u64 offset = end.words.offset + 8 * prng_.below(kWordsPerEnd);
  const u64 original = peer.arena.expected_word(offset);
  r.wr.remote_address = peer.arena.address(offset);
  r.wr.r_key = end.words_key;
  r.data = bytes_of(original);
  if (prng_.chance(0.5)) {
    r.wr.op = SendOp::kFetchAdd;
    peer.arena.expect_word(offset, original + r.wr.swap_or_add);
  } else {
    r.wr.op = SendOp::kCompareSwap;
    r.wr.compare = prng_.chance(0.7) ? original : prng_.next();
    if (r.wr.compare == original) peer.arena.expect_word(offset, r.wr.swap_or_add);
  }
}

// In the order of its queue, like a WRITE; other words than those of READs.
void RCWorkload::build_atomic_write(End& end, Request& r) {
  Site& site = *end.site;
  Site& peer = *end.peer->site;
  const u64 from = site.source.offset + prng_.below(kSourceBytes - 8 + 1);
  const u64 offset = end.words.offset + 8 * prng_.below(kWordsPerEnd);
  r.wr.op = SendOp::kAtomicWrite;
  r.wr.remote_address = peer.arena.address(offset);
  r.wr.r_key = end.words_key;
  r.sges.push_back({site.arena.address(from), 8, site.source_keys.l_key});
  peer.arena.expect(offset, site.arena.actual(from, 8));
}

void RCWorkload::build_flush(End& end, Request& r) {
  r.wr.op = SendOp::kFlush;
  r.wr.remote_address = end.peer->site->arena.address(end.zone.offset);
  r.wr.r_key = end.zone_key;
  r.wr.flush.global = true;
  if (prng_.chance(0.3)) r.wr.flush.selectivity = FlushSelectivity::kRegion;
  r.wr.flush_length = static_cast<u32>(prng_.below(end.zone.length + 1));
}

// A window on what the peer may write here: bound and lent to it, or bound and taken back.
bool RCWorkload::build_window(End& end, Request& r) {
  for (std::size_t i = 0; i < end.windows.size(); ++i) {
    Window& window = end.windows[i];
    if (window.state == Window::State::kOurs) {
      r.wr.op = SendOp::kLocalInvalidate;
      r.wr.invalidate = window.key;
    } else if (window.state == Window::State::kFree) {
      r.wr.op = SendOp::kBindMW;
      r.wr.mw = window.key;
      window.key = RKey{(window.key.value & ~0xffu) | ((window.key.value + 1) & 0xff)};
      r.wr.mw_new = window.key;
      r.wr.mw_bind = {end.peer->zone_l_key, end.site->arena.address(end.peer->zone.offset),
                      end.peer->zone.length, Access::kRemoteWrite};
    } else {
      continue;
    }
    window.state = Window::State::kBinding;
    r.window = i;
    r.wr.signaled = true;
    return true;
  }
  return false;
}

// The SGEs of a READ or atomic.
void RCWorkload::land(End& end, Request& r, u32 length) {
  Site& site = *end.site;
  r.slot = site.free_slots.back();
  site.free_slots.pop_back();
  r.landing = land(site, *r.slot, length, plan_.max_sge);
  r.sges = sges_of(site, r.landing);
}

std::vector<SGE> RCWorkload::sges_of(const Site& site, const std::vector<Piece>& pieces) {
  std::vector<SGE> sges;
  sges.reserve(pieces.size());
  for (const Piece& piece : pieces)
    sges.push_back({site.arena.address(piece.range.offset), static_cast<u32>(piece.range.length),
                    piece.l_key});
  return sges;
}

// Returns pieces of a slot, `length` bytes in all, with gaps that must stay untouched.
std::vector<RCWorkload::Piece> RCWorkload::land(Site& site, u64 slot, u32 length, u32 max_pieces) {
  std::vector<Piece> pieces;
  u64 offset = slot;
  for (const u32 piece : cut(prng_, length, max_pieces)) {
    offset += prng_.below(kGapBytes + 1);
    pieces.push_back({{offset, piece}, site.landing_keys.l_key});
    offset += piece;
  }
  return pieces;
}

}  // namespace verbena::sim
