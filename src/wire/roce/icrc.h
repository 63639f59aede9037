// ICRC of RoCEv2 and RoCEv1: CRC-32 over the packet with the fields that routers change replaced by
// ones. IBTA Vol 1, 7.8.1; Annex A17.3.3. The CRC is Ethernet's (reflected 0x04c11db7); the four
// bytes on the wire are its little-endian form.
//
// The IPv4 Identification is inside the ICRC, and a UDP socket never sees it. Its 16 bits enter
// linearly, so a receiver can still (a) test a guess with all 32 bits, or (b) solve for the one
// Identification that would make the ICRC right, which leaves a 16-bit test.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/types.h"
#include "wire/ib/gid.h"
#include "wire/ib/grh.h"
#include "wire/ib/packet.h"

namespace verbena {

inline constexpr u16 kRoCEv2Port = 4791;  // UDP destination port. A17.3.1
// BTH .. pad of the longest UDP datagram over IPv4: 65535 less IPv4 20, UDP 8, ICRC 4.
inline constexpr std::size_t kMaxTransportSize = 65503;

// The fields outside of the transport packet that the ICRC covers. Traffic class/TOS, TTL/hop
// limit, flow label and checksums are masked, hence absent.
struct RoCEv2Envelope {
  GID source{}, destination{};  // both IPv4-mapped, or neither
  u16 udp_source_port = 0;
  u16 udp_destination_port = kRoCEv2Port;
  u16 identification = 0;     // IPv4 only
  bool dont_fragment = true;  // IPv4 only; the other flag and the offset are 0
  friend bool operator==(const RoCEv2Envelope&, const RoCEv2Envelope&) = default;
};

// The CRC behind an envelope, where the packet itself begins. Packets come in runs of one flow and
// one size, or of two sizes that alternate: a request and an acknowledgement. Their envelopes
// differ only in the Identification. So the last CRC of each size is kept, and the Identification,
// which enters linearly, is added to it.
class EnvelopeCRC {
 public:
  // `transport_size`: bytes from BTH to the end of pad, without the ICRC; <= kMaxTransportSize.
  [[nodiscard]] u32 of(const RoCEv2Envelope& envelope, std::size_t transport_size);

 private:
  struct Last {
    RoCEv2Envelope envelope{};  // with the Identification 0
    std::size_t size = 0;
    u32 crc = 0;  // behind the envelope; undefined while the size is 0
  };
  static constexpr std::size_t kKept = 4;

  std::array<Last, kKept> last_{};  // by the size in words
};

// Running CRC of one packet. First call headers() once, with BTH and any number of the bytes behind
// it; then update() with the rest in order. finish() returns the value to store little-endian. A
// call for a few bytes costs as much as one for 100.
class ICRC {
 public:
  explicit ICRC(u32 behind_envelope) : crc_(behind_envelope) {}
  void headers(std::span<const u8> bth_and_more);  // >= 12 bytes; masks the byte of FECN and BECN
  void update(std::span<const u8> bytes);
  [[nodiscard]] u32 finish() const { return crc_; }

 private:
  u32 crc_;
};

// The four bytes on the wire, behind pad. Little-endian, unlike all else.
[[nodiscard]] constexpr u32 load_icrc(std::span<const u8, kICRCSize> in) {
  return u32{in[0]} | u32{in[1]} << 8 | u32{in[2]} << 16 | u32{in[3]} << 24;
}
constexpr void store_icrc(u32 icrc, std::span<u8, kICRCSize> out) {
  for (u8& byte : out) {
    byte = static_cast<u8>(icrc);
    icrc >>= 8;
  }
}

// Computes the whole ICRC in one call. `transport`: BTH .. end of pad, contiguous.
[[nodiscard]] u32 icrc_of(const RoCEv2Envelope& envelope, std::span<const u8> transport);
// The same, with a `flow` that has seen the packets before.
[[nodiscard]] u32 icrc_of(EnvelopeCRC& flow, const RoCEv2Envelope& envelope,
                          std::span<const u8> transport);

// The same for RoCEv1 (EtherType 0x8915) and for InfiniBand with a GRH. LRH is masked whole; RoCEv1
// has none, but counts it. Annex A16.
[[nodiscard]] u32 icrc_of_v1(const GRH& grh, std::span<const u8> transport);
// The CRC behind the GRH, for a running ICRC.
[[nodiscard]] u32 crc_behind(const GRH& grh);

// Returns the bits in which the Identification must differ from that of `computed`, an ICRC over
// `transport_size` bytes <= kMaxTransportSize, for `received` to be right. Returns nullopt if no
// Identification would make it right (a corrupt packet). IPv4 only. A random ICRC passes once in
// 2^16.
[[nodiscard]] std::optional<u16> solve_identification(u32 computed, u32 received,
                                                      std::size_t transport_size);

}  // namespace verbena
