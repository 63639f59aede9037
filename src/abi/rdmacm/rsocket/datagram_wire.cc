#include "abi/rdmacm/rsocket/datagram_wire.h"

#include <algorithm>

#include "base/bytes.h"

namespace verbena::rdmacm::rsocket {
namespace {

constexpr u8 kIPv4 = 4, kIPv6 = 6;
constexpr u32 kTag = 0x55555555, kQPNMask = 0xff'ffff;
constexpr u8 kData = 0, kControl = 7;
constexpr std::size_t kAddressSize6 = 16;

u8 version_of(const SocketEndpoint& endpoint) { return endpoint.family == AF_INET ? kIPv4 : kIPv6; }

SocketEndpoint endpoint_at(int family, const u8* ipv4, const u8* ipv6) {
  SocketEndpoint endpoint{.family = family};
  if (family == AF_INET)
    endpoint.address = GID::from_ipv4(load_be32(ipv4));
  else
    std::copy_n(ipv6, kAddressSize6, endpoint.address.bytes.begin());
  return endpoint;
}

void store_address(const SocketEndpoint& from, u8* ipv4, u8* ipv6) {
  if (from.family == AF_INET)
    store_be32(ipv4, from.address.ipv4());
  else
    std::ranges::copy(from.address.bytes, ipv6);
}

// The family that version and length agree on, when all of it is there.
std::optional<int> family_of(std::span<const u8> in, u8 version, u8 length, u8 length4,
                             u8 length6) {
  if (in.size() < length) return std::nullopt;
  if (version == kIPv4 && length == length4) return AF_INET;
  if (version == kIPv6 && length == length6) return AF_INET6;
  return std::nullopt;
}

}  // namespace

std::optional<DatagramHeader> DatagramHeader::decode(std::span<const u8> in) {
  if (in.size() < 8) return std::nullopt;
  const auto family = family_of(in, in[0], in[1], 8, kLongest);
  if (!family) return std::nullopt;
  DatagramHeader header{.source = endpoint_at(*family, in.data() + 4, in.data() + 8)};
  header.source.port = load_be16(in.data() + 2);
  return header;
}

HeaderBytes DatagramHeader::encode() const {
  HeaderBytes out{.size = size()};
  u8* const bytes = out.bytes.data();
  bytes[0] = version_of(source);
  bytes[1] = static_cast<u8>(size());
  store_be16(bytes + 2, source.port);
  store_address(source, bytes + 4, bytes + 8);
  return out;
}

std::optional<Introduction> Introduction::decode(std::span<const u8> in) {
  if (in.size() < 16 || load_be32(in.data()) != kTag) return std::nullopt;
  const auto family = family_of(in, in[4], in[6], 16, 28);
  if (!family || (in[5] != kData && in[5] != kControl)) return std::nullopt;
  return Introduction{.has_data = in[5] == kData,
                      .qpn = QPN{load_be32(in.data() + 8) & kQPNMask},
                      .place = endpoint_at(*family, in.data() + 12, in.data() + 12)};
}

HeaderBytes Introduction::encode() const {
  HeaderBytes out{.size = size()};
  u8* const bytes = out.bytes.data();
  store_be32(bytes, kTag);
  bytes[4] = version_of(place);
  bytes[5] = has_data ? kData : kControl;
  bytes[6] = static_cast<u8>(size());
  store_be32(bytes + 8, qpn.value);
  store_address(place, bytes + 12, bytes + 12);
  return out;
}

}  // namespace verbena::rdmacm::rsocket
