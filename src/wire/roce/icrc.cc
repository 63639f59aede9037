#include "wire/roce/icrc.h"

#include <isa-l/crc.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/eth/ipv4.h"
#include "wire/eth/ipv6.h"
#include "wire/eth/udp.h"
#include "wire/roce/crc32_field.h"

namespace verbena {
namespace {

// Without PCLMULQDQ, as on QEMU's default processor, ISA-L processes a byte at a time, and zlib a
// word.
const bool kHasPCLMULQDQ = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");

// ISA-L's crc32_gzip_refl() and zlib's crc32_z() take and return the finished (inverted) value, so
// calls chain and the CRC of nothing is 0. An ICRC starts with the LRH, or 8 bytes in its place, as
// ones: CRC-32 of eight 0xff.
constexpr u32 kAfterLRH = 0x2144df1c;

constexpr u8 kOnes = 0xff;
constexpr std::size_t kFECNAt = 4;  // in BTH: FECN, BECN and 6 reserved bits
constexpr std::size_t kIPv4EnvelopeSize = IPv4Header::kSize + UDPHeader::kSize;
constexpr std::size_t kIPv6EnvelopeSize = IPv6Header::kSize + UDPHeader::kSize;

// In the IPv4 header, Identification is followed by flags, TTL, protocol, checksum and addresses.
constexpr std::size_t kIPv4AfterIdentification = 14;

u32 crc32(u32 crc, std::span<const u8> bytes) {
  if (!kHasPCLMULQDQ) [[unlikely]]
    return static_cast<u32>(crc32_z(crc, bytes.data(), bytes.size()));
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

// For both IPv6 and the GRH.
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

constexpr crc32_field::BackwardPowers kBackward;

using ByByte = std::array<u32, 256>;

// The correction of the CRC before BTH for each value of its masked byte, so that the CRC behind
// that byte is as if it were ones: the difference, run backwards to the beginning of BTH.
constexpr ByByte kMask = [] {
  ByByte table{};
  const u32 back = kBackward.of(kFECNAt);
  for (u32 byte = 0; byte < table.size(); ++byte)
    table[byte] = crc32_field::multiply(back, byte ^ kOnes);
  return table;
}();

// The effect of each byte of the Identification on the CRC behind an IPv4 envelope.
constexpr u32 kAfterIdentification = kIPv4AfterIdentification + UDPHeader::kSize;
constexpr std::array<ByByte, 2> kIdentification = [] {
  std::array<ByByte, 2> tables{};
  const u32 forward = crc32_field::forward(2 + kAfterIdentification);
  for (u32 at = 0; at < tables.size(); ++at)
    for (u32 byte = 0; byte < tables[at].size(); ++byte)
      tables[at][byte] = crc32_field::multiply(forward, byte << 8 * at);
  return tables;
}();

u32 crc_of_ipv4(const RoCEv2Envelope& envelope, std::size_t udp_length) {
  std::array<u8, kIPv4EnvelopeSize> masked;
  put_masked_ipv4(masked, envelope, udp_length);
  return crc32(kAfterLRH, masked);
}

u32 crc_of_ipv6(const RoCEv2Envelope& envelope, std::size_t udp_length) {
  std::array<u8, kIPv6EnvelopeSize> masked;
  put_masked_ipv6(std::span(masked).first<IPv6Header::kSize>(), static_cast<u16>(udp_length),
                  kProtocolUDP, envelope.source, envelope.destination);
  Writer<kIPv6EnvelopeSize> w(masked);
  put_masked_udp<IPv6Header::kSize>(w, envelope, udp_length);
  return crc32(kAfterLRH, masked);
}

u32 crc_of(const RoCEv2Envelope& envelope, std::size_t transport_size) {
  CHECK(transport_size <= kMaxTransportSize);
  const std::size_t udp_length = UDPHeader::kSize + transport_size + kICRCSize;
  return envelope.source.is_ipv4() ? crc_of_ipv4(envelope, udp_length)
                                   : crc_of_ipv6(envelope, udp_length);
}

// Returns true if they differ at most in the Identification.
bool same_flow(const RoCEv2Envelope& a, const RoCEv2Envelope& b) {
  return a.source == b.source && a.destination == b.destination &&
         a.udp_source_port == b.udp_source_port &&
         a.udp_destination_port == b.udp_destination_port && a.dont_fragment == b.dont_fragment;
}

}  // namespace

u32 EnvelopeCRC::of(const RoCEv2Envelope& envelope, std::size_t transport_size) {
  Last& last = last_[transport_size / 4 % kKept];
  if (transport_size != last.size || !same_flow(envelope, last.envelope)) {
    last.envelope = envelope;
    last.envelope.identification = 0;
    last.size = transport_size;
    last.crc = crc_of(last.envelope, transport_size);
  }
  if (envelope.identification == 0 || !envelope.source.is_ipv4()) return last.crc;
  return last.crc ^ kIdentification[0][envelope.identification >> 8] ^
         kIdentification[1][envelope.identification & 0xff];
}

void ICRC::headers(std::span<const u8> bth_and_more) {
  CHECK(bth_and_more.size() >= BTH::kSize);
  crc_ = crc32(crc_ ^ kMask[bth_and_more[kFECNAt]], bth_and_more);
}

void ICRC::update(std::span<const u8> bytes) {
  if (!bytes.empty()) crc_ = crc32(crc_, bytes);
}

u32 icrc_of(const RoCEv2Envelope& envelope, std::span<const u8> transport) {
  ICRC icrc(crc_of(envelope, transport.size()));
  icrc.headers(transport);
  return icrc.finish();
}

u32 icrc_of(EnvelopeCRC& flow, const RoCEv2Envelope& envelope, std::span<const u8> transport) {
  ICRC icrc(flow.of(envelope, transport.size()));
  icrc.headers(transport);
  return icrc.finish();
}

u32 crc_behind(const GRH& grh) {
  std::array<u8, GRH::kSize> masked;
  put_masked_ipv6(masked, grh.payload_length, grh.next_header, grh.sgid, grh.dgid);
  return crc32(kAfterLRH, masked);
}

u32 icrc_of_v1(const GRH& grh, std::span<const u8> transport) {
  ICRC icrc(crc_behind(grh));
  icrc.headers(transport);
  return icrc.finish();
}

// The CRC is linear in the message. So the two ICRCs differ by the Identification's effect alone on
// a register that began with 0: its two bytes, then n bytes of zeros. Run backwards over those n +
// 2 bytes, the register must be the two bytes themselves: first byte lowest, nothing above.
std::optional<u16> solve_identification(u32 computed, u32 received, std::size_t transport_size) {
  CHECK(transport_size <= kMaxTransportSize);
  const std::size_t n = kAfterIdentification + transport_size;
  const u32 bytes = crc32_field::multiply(kBackward.of(n + 2), computed ^ received);
  if (bytes > 0xffff) return std::nullopt;
  return static_cast<u16>((bytes & 0xff) << 8 | bytes >> 8);
}

}  // namespace verbena
