// PSP header: encryption of one packet for one association. Google's PSP Architecture
// Specification, "PSP Packet Formats". Network order. It follows a UDP header to port 1000; the
// packet ends with the ICV.
//    0                8               16              24             31
//   |  Next Header  |  Hdr Ext Len  |0 0|Crypt Offset|S|D|Version|V|1|
//   |                 Security Parameters Index (SPI)                 |
//   |                 Initialization Vector (IV, 64 bits)             |
//   |                 Virtualization Cookie (64 bits), if V           |
// Hdr Ext Len counts units of 8 bytes without the first 8. Crypt Offset counts units of 4 bytes
// behind the IV, the cookie included, that are authenticated and not encrypted.
// Invariant: decode(encode(h)) == h for a valid header.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"

namespace verbena {

inline constexpr u16 kPSPPort = 1000;  // UDP and, for the handshake of keys, TCP

enum class PSPVersion : u8 { kAES128GCM = 0, kAES256GCM = 1, kAES128GMAC = 2, kAES256GMAC = 3 };

struct PSPHeader {
  static constexpr std::size_t kSize = 16;  // bytes, without a cookie
  static constexpr std::size_t kSPIAt = 4, kIVAt = 8, kCookieAt = 16;
  static constexpr std::size_t kCookieSize = 8;
  static constexpr std::size_t kICVSize = 16;       // behind the packet
  static constexpr u8 kMaxCryptOffset = 63;         // units of 4 bytes
  static constexpr u32 kKeySelector = 0x80000000u;  // of an SPI: which of two master keys

  u8 next_header = 17;  // the IP protocol of what is encrypted: UDP
  u8 crypt_offset = 0;
  bool sampled = false, drop_after_sampling = false;
  PSPVersion version = PSPVersion::kAES128GCM;
  u32 spi = 0;
  u64 iv = 0;
  std::optional<u64> cookie{};  // as it lies in the packet, encrypted or not

  // Returns nullopt if it is short or if the version is not defined, a reserved bit is set, the bit
  // that is always one is not, or the length contradicts V.
  [[nodiscard]] static std::optional<PSPHeader> decode(std::span<const u8> in);
  // Precondition: `out` has size() bytes.
  void encode(std::span<u8> out) const;
  [[nodiscard]] std::size_t size() const { return kSize + (cookie ? kCookieSize : 0); }
  [[nodiscard]] std::size_t crypt_offset_bytes() const { return crypt_offset * std::size_t{4}; }
  friend bool operator==(const PSPHeader&, const PSPHeader&) = default;
};

// The bytes that PSP in transport mode adds to a RoCEv2 packet: the UDP header to port 1000, the
// PSP header and the ICV. The original UDP header is encrypted.
inline constexpr u32 kPSPOverheadBytes = 8 + PSPHeader::kSize + PSPHeader::kICVSize;

}  // namespace verbena
