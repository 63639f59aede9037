// IPCMHeader: the first 36 bytes of the private data of a REQ or SIDR_REQ between IP addresses,
// as every rdma_cm sends it. IBTA Vol 1, Annex A11, table A11-1. Network order.
//    0                8               16                              31
//   |MajV(4)|MinV(4)|IPV(4) | rsvd  |          Source Port          |
//   |               Source IP Address (128)                         |
//   |             Destination IP Address (128)                      |
// An IPv4 address is in the last 4 bytes of its field, behind 12 zero bytes.
// Invariant: decode(encode(h)) == h for valid h. Reserved bits: sent as 0, ignored on receipt.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"
#include "wire/ib/gid.h"

namespace verbena::cm {

enum class IPVersion : u8 { k4 = 4, k6 = 6 };

struct IPCMHeader {
  static constexpr std::size_t kSize = 36;  // bytes
  static constexpr u8 kMajorVersion = 0;
  u8 minor_version = 0;  // 4 bits
  IPVersion ip_version = IPVersion::k4;
  u16 source_port = 0;
  GID source{}, destination{};  // of IPVersion::k4: in GID's form of an IPv4 address
  // Returns nullopt if the header is short, of another major version, or neither IPv4 nor IPv6.
  [[nodiscard]] static std::optional<IPCMHeader> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const IPCMHeader&, const IPCMHeader&) = default;
};

}  // namespace verbena::cm
