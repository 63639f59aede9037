// TCP header without its options. RFC 9293, 3.1. Network order.
//   |          Source Port          |       Destination Port        |
//   |                        Sequence Number                        |
//   |                    Acknowledgment Number                      |
//   |DOffset| Rsrvd |C|E|U|A|P|R|S|F|            Window             |
//   |           Checksum            |         Urgent Pointer        |
// Invariant: decode(encode(h)) == h for valid h. Reserved bits: sent as 0, ignored on receipt.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"

namespace verbena {

struct TCPHeader {
  static constexpr std::size_t kSize = 20;  // bytes
  static constexpr u8 kFIN = 0x01, kSYN = 0x02, kRST = 0x04, kPSH = 0x08, kACK = 0x10, kURG = 0x20,
                      kECE = 0x40, kCWR = 0x80;

  u16 source_port = 0, destination_port = 0;
  u32 sequence = 0, acknowledgement = 0;
  u8 words = kSize / 4;  // of the header with its options, 5 .. 15
  u8 flags = 0;
  u16 window = 0;  // scaled as both sides agreed. RFC 7323, 2
  u16 checksum = 0;
  u16 urgent_pointer = 0;
  [[nodiscard]] static std::optional<TCPHeader> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  [[nodiscard]] std::size_t size() const { return std::size_t{words} * 4; }  // bytes
  friend bool operator==(const TCPHeader&, const TCPHeader&) = default;
};

// Returns the checksum of a segment over IPv4, addresses in host order: header with options and
// payload, whose checksum field is 0. RFC 9293, 3.1.
[[nodiscard]] u16 tcp_checksum(u32 source, u32 destination, std::span<const u8> segment);

}  // namespace verbena
