#include "wire/iwarp/markers.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/iwarp/crc32c.h"

namespace verbena::iwarp {
namespace {

constexpr u32 kMarkedCRCBytes = 4;
constexpr std::size_t kLongestPlain = fpdu_bytes(0xffff);

u32 to_next_marker(u64 position) {
  return static_cast<u32>((kMarkerInterval - position % kMarkerInterval) % kMarkerInterval);
}

void append_marker(std::size_t begin, bool is_first, std::vector<u8>& to) {
  const std::size_t pointer = is_first ? 0 : to.size() - begin;
  std::array<u8, kMarkerBytes> marker{};
  store_be16(marker.data() + 2, static_cast<u16>(pointer));
  to.insert(to.end(), marker.begin(), marker.end());
}

// The lowest bits count as 0.
u32 pointer_at(std::span<const u8> bytes, std::size_t marker) {
  return load_be16(bytes.data() + marker + 2) & ~3u;
}

}  // namespace

void append_marked(std::span<const u8> plain, CRCUse crc, u64 position, std::vector<u8>& to) {
  const std::size_t first = to.size();
  u32 room = to_next_marker(position);
  const std::size_t begin = first + (room == 0 ? kMarkerBytes : 0);  // ULPDU_Length
  const auto add = [&](std::span<const u8> bytes) {
    while (!bytes.empty()) {
      if (room == 0) {
        append_marker(begin, to.size() == first, to);
        room = kMarkerInterval - kMarkerBytes;
      }
      const std::span<const u8> part = bytes.first(std::min<std::size_t>(room, bytes.size()));
      to.insert(to.end(), part.begin(), part.end());
      room -= static_cast<u32>(part.size());
      bytes = bytes.subspan(part.size());
    }
  };
  add(plain);
  if (room == 0) {  // it stands before the CRC, which covers it
    append_marker(begin, to.size() == first, to);
    room = kMarkerInterval - kMarkerBytes;
  }
  CRC32C sum;
  sum.add(std::span<const u8>(to).subspan(first));
  const std::array<u8, kMarkedCRCBytes> bytes =
      crc == CRCUse::kUsed ? sum.bytes() : std::array<u8, kMarkedCRCBytes>{};
  add(bytes);
}

MarkedReader::MarkedReader(CRCUse crc) : crc_(crc) {
  kept_.reserve(marked_bytes(kLongestPlain, 0));
  plain_.reserve(kLongestPlain);
}

// Returns the bytes of the FPDU that comes, with its markers; nullopt: not known yet.
std::optional<u32> MarkedReader::size() const {
  const std::size_t before = to_next_marker(position_) == 0 ? kMarkerBytes : 0;
  if (kept_.size() < before + kMPALengthBytes) return std::nullopt;
  return marked_bytes(fpdu_bytes(load_be16(kept_.data() + before)), position_);
}

MarkedReader::Step MarkedReader::read(std::span<const u8>& in) {
  while (!in.empty()) {
    const std::optional<u32> whole = size();
    const std::size_t wanted = whole ? *whole - kept_.size() : 1;
    const std::span<const u8> part = in.first(std::min(wanted, in.size()));
    kept_.insert(kept_.end(), part.begin(), part.end());
    in = in.subspan(part.size());
    if (kept_.size() == kMarkerBytes && to_next_marker(position_) == 0 && pointer_at(kept_, 0) != 0)
      return Step::kBadMarker;  // before a length is believed
    if (whole && kept_.size() == *whole) return finish();
  }
  return Step::kMore;
}

MarkedReader::Step MarkedReader::finish() {
  const std::span<const u8> all(kept_);
  plain_.clear();
  u32 room = to_next_marker(position_);
  const u32 begin = room == 0 ? kMarkerBytes : 0;
  for (u32 at = 0; at < all.size();) {
    if (room == 0) {
      if (pointer_at(all, at) != (at == 0 ? 0 : at - begin)) return Step::kBadMarker;
      at += kMarkerBytes;
      room = kMarkerInterval - kMarkerBytes;
      continue;
    }
    const u32 part = std::min(room, static_cast<u32>(all.size()) - at);
    plain_.insert(plain_.end(), all.begin() + at, all.begin() + at + part);
    at += part;
    room -= part;
  }
  CRC32C sum;
  sum.add(all.first(all.size() - kMarkedCRCBytes));
  if (crc_ == CRCUse::kUsed && !sum.matches(all.last<kMarkedCRCBytes>())) return Step::kBadCRC;
  plain_.resize(plain_.size() - kMarkedCRCBytes);
  position_ += all.size();
  kept_.clear();
  return Step::kFPDU;
}

}  // namespace verbena::iwarp
