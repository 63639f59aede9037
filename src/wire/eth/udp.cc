#include "wire/eth/udp.h"

#include "base/bytes.h"
#include "base/check.h"
#include "wire/eth/internet_checksum.h"
#include "wire/eth/ipv4.h"

namespace verbena {
namespace {

std::span<const u8> address_of(const GID& gid) {
  const std::span<const u8> all(gid.bytes);
  return gid.is_ipv4() ? all.last(4) : all;
}

}  // namespace

std::optional<UDPHeader> UDPHeader::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  if (r.get16<4>() < kSize) return std::nullopt;
  return UDPHeader{.source_port = r.get16<0>(),
                   .destination_port = r.get16<2>(),
                   .length = r.get16<4>(),
                   .checksum = r.get16<6>()};
}

void UDPHeader::encode(std::span<u8, kSize> out) const {
  CHECK(length >= kSize);
  Writer<kSize> w(out);
  w.put16<0>(source_port);
  w.put16<2>(destination_port);
  w.put16<4>(length);
  w.put16<6>(checksum);
}

u16 udp_checksum(const GID& source, const GID& destination, const UDPHeader& header,
                 std::span<const u8> payload) {
  CHECK(source.is_ipv4() == destination.is_ipv4());
  CHECK(header.length == UDPHeader::kSize + payload.size());
  InternetChecksum sum;
  sum.add(address_of(source));
  sum.add(address_of(destination));
  sum.add16(kProtocolUDP);
  sum.add16(header.length);
  sum.add16(header.source_port);
  sum.add16(header.destination_port);
  sum.add16(header.length);
  sum.add(payload);
  const u16 checksum = sum.finish();
  return checksum == 0 ? u16{0xffff} : checksum;  // 0 would mean "not computed"
}

}  // namespace verbena
