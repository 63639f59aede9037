// MPA markers: they tell a receiver that has lost its place where an FPDU begins. RFC 5044, 4.3.
// One stands at each 512th byte of a direction's stream, counted from the first byte behind the
// MPA frame, and so before the first FPDU:
//   | reserved (16), sent as 0, ignored | FPDUPTR (16): bytes from ULPDU_Length to the marker |
// A marker between two FPDUs belongs to the second, with FPDUPTR 0. FPDUs have whole words, so a
// marker splits no word. CRCs cover markers.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "wire/iwarp/mpa.h"

namespace verbena::iwarp {

inline constexpr u32 kMarkerInterval = 512, kMarkerBytes = 4;

// Returns the size of an FPDU of `plain` bytes, with the markers that it has if it begins at
// `position` of the stream. Precondition: position % 4 == 0.
[[nodiscard]] constexpr u32 marked_bytes(u32 plain, u64 position) {
  constexpr u32 kBetween = kMarkerInterval - kMarkerBytes;
  const u32 to_next =
      static_cast<u32>((kMarkerInterval - position % kMarkerInterval) % kMarkerInterval);
  if (plain <= to_next) return plain;
  return plain + (1 + (plain - to_next - 1) / kBetween) * kMarkerBytes;
}

// Returns the longest ULPDU whose FPDU fits a segment, wherever markers fall. RFC 5044, 5.1.
[[nodiscard]] constexpr u32 longest_marked_ulpdu(u32 mss) {
  const u32 markers = (mss + kMarkerInterval - 1) / kMarkerInterval;
  return mss - (kMPAOverhead + kMarkerBytes * markers + mss % 4);
}

// Appends an FPDU, whose plain bytes but the CRC are given, as it stands at `position`.
void append_marked(std::span<const u8> plain, CRCUse crc, u64 position, std::vector<u8>& to);

// Takes FPDUs off a stream with markers, whole, and gives them without. Sans-IO; no allocation
// after construction.
class MarkedReader {
 public:
  enum class Step : u8 { kMore, kFPDU, kBadMarker, kBadCRC };

  explicit MarkedReader(CRCUse crc);
  // Takes bytes off the front of `in`, up to the end of an FPDU. Behind a fault the stream has no
  // meaning.
  [[nodiscard]] Step read(std::span<const u8>& in);
  // kFPDU: without markers; its CRC is checked, and not among the bytes.
  [[nodiscard]] std::span<const u8> fpdu() const { return {plain_.data(), plain_.size()}; }
  [[nodiscard]] bool is_at_boundary() const { return kept_.empty(); }

 private:
  [[nodiscard]] std::optional<u32> size() const;
  [[nodiscard]] Step finish();

  CRCUse crc_;
  u64 position_ = 0;  // of the FPDU that comes
  std::vector<u8> kept_, plain_;
};

}  // namespace verbena::iwarp
