#include "fabric/tcp/segment_codec.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"

namespace verbena::fabric {
namespace {

constexpr u8 kSYN = 1, kACK = 2, kPSH = 4, kECE = 8, kCWR = 16, kDuplicate = 32;
constexpr u32 kBlockShift = 6;
constexpr std::size_t kNumbers = 14;  // where they begin

u8 flags_of(const tcp::Segment& s) {
  return static_cast<u8>((s.syn ? kSYN : 0) | (s.ack ? kACK : 0) | (s.push ? kPSH : 0) |
                         (s.ece ? kECE : 0) | (s.cwr ? kCWR : 0) | (s.duplicate ? kDuplicate : 0) |
                         s.block_count << kBlockShift);
}

// The n-th of six numbers of 26 bits.
void put_number(Frame& frame, u32 n, u64 value) {
  CHECK(value < 1u << 26);
  u8* const h = frame.headers.data();
  store_be24(h + kNumbers + std::size_t{3} * n, static_cast<u32>(value) & 0xffffff);
  u8& upper = n < 4 ? h[1] : h[4];
  upper = static_cast<u8>(upper | value >> 24 << 2 * (n % 4));
}

u64 number(const Frame& frame, u32 n) {
  const u8* const h = frame.headers.data();
  const u32 upper = (n < 4 ? h[1] : h[4]) >> 2 * (n % 4) & 3u;
  return load_be24(h + kNumbers + std::size_t{3} * n) | upper << 24;
}

}  // namespace

void put_segment(const tcp::Segment& segment, u32 end, Frame& frame) {
  frame.headers.fill(0);
  u8* const h = frame.headers.data();
  h[0] = flags_of(segment);
  store_be16(h + 2, static_cast<u16>(std::min<u64>(segment.window >> kWindowScale, 0xffff)));
  store_be24(h + 5, end);
  const u64 position = segment.ack ? segment.acknowledgement : segment.sequence;
  store_be16(h + 8, static_cast<u16>(position >> 32));
  store_be32(h + 10, static_cast<u32>(position));
  if (!segment.ack) store_be32(h + kNumbers, segment.word);
  for (u32 i = 0; i < segment.block_count; ++i) {
    const tcp::SACKBlock& block = segment.blocks[i];
    put_number(frame, 2 * i, block.begin - segment.acknowledgement);
    put_number(frame, 2 * i + 1, block.end - block.begin);
  }
  frame.header_bytes = Frame::kHeaderBytes;
  frame.payload_bytes = static_cast<u16>(segment.bytes);
  frame.traffic_class = traffic_class_of(dscp_of(frame.traffic_class), segment.ecn);
}

tcp::Segment segment_of(const Frame& frame) {
  const u8* const h = frame.headers.data();
  tcp::Segment segment;
  segment.syn = (h[0] & kSYN) != 0;
  segment.ack = (h[0] & kACK) != 0;
  segment.push = (h[0] & kPSH) != 0;
  segment.ece = (h[0] & kECE) != 0;
  segment.cwr = (h[0] & kCWR) != 0;
  segment.duplicate = (h[0] & kDuplicate) != 0;
  segment.block_count = h[0] >> kBlockShift;
  segment.window = u64{load_be16(h + 2)} << kWindowScale;
  const u64 position = u64{load_be16(h + 8)} << 32 | load_be32(h + 10);
  (segment.ack ? segment.acknowledgement : segment.sequence) = position;
  if (!segment.ack) segment.word = load_be32(h + kNumbers);
  for (u32 i = 0; i < segment.block_count; ++i) {
    const u64 begin = position + number(frame, 2 * i);
    segment.blocks[i] = {begin, begin + number(frame, 2 * i + 1)};
  }
  segment.bytes = frame.payload_bytes;
  segment.ecn = ecn_of(frame.traffic_class);
  return segment;
}

u32 end_of(const Frame& frame) { return load_be24(frame.headers.data() + 5); }

}  // namespace verbena::fabric
