#include "wire/roce/icrc.h"

#include <isa-l/crc.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/eth/ipv4.h"
#include "wire/eth/ipv6.h"
#include "wire/eth/udp.h"
#include "wire/roce/crc32_field.h"

namespace verbena {
namespace {

// ISA-L's crc32_gzip_refl() takes and gives the finished (inverted) value, so calls chain and the
// CRC of nothing is 0. An ICRC starts with the LRH, or 8 bytes in its place, as ones: CRC-32 of
// eight 0xff.
constexpr u32 kAfterLRH = 0x2144df1c;

constexpr u8 kOnes = 0xff;
constexpr std::size_t kFECNAt = 4;  // in BTH: FECN, BECN and 6 reserved bits
constexpr std::size_t kIPv4EnvelopeSize = IPv4Header::kSize + UDPHeader::kSize;
constexpr std::size_t kIPv6EnvelopeSize = IPv6Header::kSize + UDPHeader::kSize;

// In the IPv4 header, Identification is followed by flags, TTL, protocol, checksum and addresses.
constexpr std::size_t kIPv4AfterIdentification = 14;

u32 crc32(u32 crc, std::span<const u8> bytes) {
  return crc32_gzip_refl(crc, bytes.data(), bytes.size());
}

template <std::size_t At, std::size_t N>
void put_masked_udp(Writer<N>& w, const RoCEv2Envelope& e, std::size_t udp_length) {
  w.template put16<At>(e.udp_source_port);
  w.template put16<At + 2>(e.udp_destination_port);
  w.template put16<At + 4>(static_cast<u16>(udp_length));
  w.template put16<At + 6>(0xffff);  // checksum
}

void put_masked_ipv4(std::span<u8, kIPv4EnvelopeSize> out, const RoCEv2Envelope& e,
                     std::size_t udp_length) {
  Writer<kIPv4EnvelopeSize> w(out);
  w.put16<0>(0x45ff);  // version 4, IHL 5; TOS
  w.put16<2>(static_cast<u16>(IPv4Header::kSize + udp_length));
  w.put16<4>(e.identification);
  w.put16<6>(e.dont_fragment ? 0x4000 : 0);
  w.put8<8>(kOnes);  // TTL
  w.put8<9>(kProtocolUDP);
  w.put16<10>(0xffff);  // checksum
  w.put32<12>(e.source.ipv4());
  w.put32<16>(e.destination.ipv4());
  put_masked_udp<IPv4Header::kSize>(w, e, udp_length);
}

// Shared by IPv6 and the GRH.
void put_masked_ipv6(std::span<u8, IPv6Header::kSize> out, u16 payload_length, u8 next_header,
                     const GID& source, const GID& destination) {
  Writer<IPv6Header::kSize> w(out);
  w.put32<0>(0x6fffffff);  // version 6; traffic class, flow label
  w.put16<4>(payload_length);
  w.put8<6>(next_header);
  w.put8<7>(kOnes);  // hop limit
  std::ranges::copy(source.bytes, out.begin() + 8);
  std::ranges::copy(destination.bytes, out.begin() + 24);
}

// How much of the transport to copy behind the masked bytes: all, if there is `room`, else what
// leaves a multiple of 32 bytes, which ISA-L does much quicker than one with an odd end.
std::size_t copied_size(std::size_t transport_size, std::size_t room) {
  constexpr std::size_t kStride = 32;
  if (transport_size <= room) return transport_size;
  return BTH::kSize + (transport_size - BTH::kSize) % kStride;
}

// CRC of `masked` (with room behind its `size` bytes for some headers) and of BTH and what follows.
u32 crc_with_headers(std::span<u8> masked, std::size_t size, std::span<const u8> bth_and_more) {
  CHECK(bth_and_more.size() >= BTH::kSize && size + kMaxHeadersSize <= masked.size());
  const std::size_t n = copied_size(bth_and_more.size(), masked.size() - size);
  std::ranges::copy(bth_and_more.first(n), masked.begin() + static_cast<std::ptrdiff_t>(size));
  masked[size + kFECNAt] = kOnes;
  const u32 crc = crc32(kAfterLRH, masked.first(size + n));
  return n == bth_and_more.size() ? crc : crc32(crc, bth_and_more.subspan(n));
}

constexpr crc32_field::BackwardPowers kBackward;

}  // namespace

ICRC::ICRC(const RoCEv2Envelope& envelope, std::size_t transport_size) : crc_(kAfterLRH) {
  CHECK(transport_size <= kMaxTransportSize);
  const std::size_t udp_length = UDPHeader::kSize + transport_size + kICRCSize;
  const std::span<u8, kMaskedSize> out(masked_);
  if (envelope.source.is_ipv4()) {
    put_masked_ipv4(out.first<kIPv4EnvelopeSize>(), envelope, udp_length);
    envelope_size_ = kIPv4EnvelopeSize;
    return;
  }
  put_masked_ipv6(out.first<IPv6Header::kSize>(), static_cast<u16>(udp_length), kProtocolUDP,
                  envelope.source, envelope.destination);
  Writer<kIPv6EnvelopeSize> w(out.first<kIPv6EnvelopeSize>());
  put_masked_udp<IPv6Header::kSize>(w, envelope, udp_length);
  envelope_size_ = kIPv6EnvelopeSize;
}

void ICRC::headers(std::span<const u8> bth_and_more) {
  crc_ = crc_with_headers(masked_, envelope_size_, bth_and_more);
}

void ICRC::update(std::span<const u8> bytes) {
  if (!bytes.empty()) crc_ = crc32(crc_, bytes);
}

u32 icrc_of(const RoCEv2Envelope& envelope, std::span<const u8> transport) {
  ICRC icrc(envelope, transport.size());
  icrc.headers(transport);
  return icrc.finish();
}

u32 icrc_of_v1(const GRH& grh, std::span<const u8> transport) {
  std::array<u8, GRH::kSize + kMaxHeadersSize> masked;
  put_masked_ipv6(std::span(masked).first<GRH::kSize>(), grh.payload_length, grh.next_header,
                  grh.sgid, grh.dgid);
  return crc_with_headers(masked, GRH::kSize, transport);
}

// The CRC is linear in the message, so the two ICRCs differ by what the Identification alone leaves
// in a register that began with 0: its two bytes, then n bytes of zeros. Run backwards over those
// n + 2 bytes, the register must be the two bytes themselves: first byte lowest, nothing above.
std::optional<u16> solve_identification(u32 computed, u32 received, std::size_t transport_size) {
  CHECK(transport_size <= kMaxTransportSize);
  const std::size_t n = kIPv4AfterIdentification + UDPHeader::kSize + transport_size;
  const u32 bytes = crc32_field::multiply(kBackward.of(n + 2), computed ^ received);
  if (bytes > 0xffff) return std::nullopt;
  return static_cast<u16>((bytes & 0xff) << 8 | bytes >> 8);
}

}  // namespace verbena
