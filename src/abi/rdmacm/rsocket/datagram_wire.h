// The messages of datagram rsockets. Facts of librdmacm's docs/rsocket, "datagram overview". An
// rsocket is known by its UDP address. An rsocket that knows the peer's QPN sends on a UD QP, with
// a DatagramHeader before the data. One that does not know it sends the data by UDP, behind an
// Introduction, and the peer answers with an Introduction alone.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "abi/rdmacm/socket_endpoint.h"
#include "base/types.h"

namespace verbena::rdmacm::rsocket {

// Encoded, with its size.
struct HeaderBytes {
  std::array<u8, 28> bytes{};
  std::size_t size = 0;
};

//    0       8       16              31
//   |version| length|     port        |   version: 4 or 6; length: of this header, 8 or 24
//   | IPv4 address, or flow label and |
//   | IPv6 address                    |
struct DatagramHeader {
  static constexpr std::size_t kLongest = 24;
  SocketEndpoint source;

  [[nodiscard]] std::size_t size() const { return source.family == AF_INET ? 8 : kLongest; }
  // Returns nullopt if `in` is too short, or neither IPv4 nor IPv6.
  [[nodiscard]] static std::optional<DatagramHeader> decode(std::span<const u8> in);
  [[nodiscard]] HeaderBytes encode() const;
};

//    0       8       16      24     31
//   |          0x55555555             |
//   |version|  op   | length| reserved|   op: 0 data follow, 7 none do; length: 16 or 28
//   |     QPN, 24 bits at the right   |
//   | IPv4 or IPv6 address            |
struct Introduction {
  bool has_data = false;
  QPN qpn;
  SocketEndpoint place;  // where the sender's QP is; no port

  [[nodiscard]] std::size_t size() const { return place.family == AF_INET ? 16 : 28; }
  [[nodiscard]] static std::optional<Introduction> decode(std::span<const u8> in);
  [[nodiscard]] HeaderBytes encode() const;
};

}  // namespace verbena::rdmacm::rsocket
