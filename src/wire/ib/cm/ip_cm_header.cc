#include "wire/ib/cm/ip_cm_header.h"

#include "base/bytes.h"
#include "wire/ib/cm/fields.h"

namespace verbena::cm {
namespace {

constexpr std::size_t kAddressSize = 16;
constexpr std::size_t kIPv4At = 12;  // in an address

GID address(IPVersion version, std::span<const u8, kAddressSize> in) {
  if (version == IPVersion::k4) return GID::from_ipv4(load_be32(in.data() + kIPv4At));
  return get_gid<0>(in);
}

void put_address(IPVersion version, const GID& gid, std::span<u8, kAddressSize> out) {
  put_gid<0>(out, gid);
  if (version == IPVersion::k6) return;
  CHECK(gid.is_ipv4());
  std::fill_n(out.begin(), kIPv4At, u8{0});
}

}  // namespace

std::optional<IPCMHeader> IPCMHeader::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const std::span<const u8, kSize> bytes = in.first<kSize>();
  const Reader<kSize> r(bytes);
  const auto version = IPVersion{get_bits(r.get8<1>(), 4, 4)};
  if (get_bits(r.get8<0>(), 4, 4) != kMajorVersion) return std::nullopt;
  if (version != IPVersion::k4 && version != IPVersion::k6) return std::nullopt;
  return IPCMHeader{.minor_version = get_bits(r.get8<0>(), 0, 4),
                    .ip_version = version,
                    .source_port = r.get16<2>(),
                    .source = address(version, bytes.subspan<4, kAddressSize>()),
                    .destination = address(version, bytes.subspan<20, kAddressSize>())};
}

void IPCMHeader::encode(std::span<u8, kSize> out) const {
  Writer<kSize> w(out);
  w.put8<0>(static_cast<u8>(put_bits(kMajorVersion, 4, 4) | put_bits(minor_version, 0, 4)));
  w.put8<1>(put_bits(static_cast<u8>(ip_version), 4, 4));
  w.put16<2>(source_port);
  put_address(ip_version, source, out.subspan<4, kAddressSize>());
  put_address(ip_version, destination, out.subspan<20, kAddressSize>());
}

}  // namespace verbena::cm
