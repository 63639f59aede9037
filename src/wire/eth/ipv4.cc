#include "wire/eth/ipv4.h"

#include "base/bytes.h"
#include "base/check.h"
#include "wire/eth/internet_checksum.h"

namespace verbena {
namespace {

constexpr u8 kVersionAndIHL = 0x45;
constexpr u16 kReservedFlag = 0x8000;
constexpr u16 kDontFragment = 0x4000;
constexpr u16 kMoreFragments = 0x2000;
constexpr u16 kMaxFragmentOffset = 0x1fff;

u16 checksum_of(std::span<const u8> header) {
  InternetChecksum sum;
  sum.add(header);
  return sum.finish();
}

}  // namespace

std::optional<IPv4Header> IPv4Header::decode(std::span<const u8> in) {
  if (in.size() < kSize || in[0] != kVersionAndIHL) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  if (r.get16<2>() < kSize || checksum_of(in.first(kSize)) != 0) return std::nullopt;
  const u16 fragment = r.get16<6>();
  if ((fragment & kReservedFlag) != 0) return std::nullopt;
  return IPv4Header{.dscp = dscp_of(r.get8<1>()),
                    .ecn = ecn_of(r.get8<1>()),
                    .total_length = r.get16<2>(),
                    .identification = r.get16<4>(),
                    .dont_fragment = (fragment & kDontFragment) != 0,
                    .more_fragments = (fragment & kMoreFragments) != 0,
                    .fragment_offset = static_cast<u16>(fragment & kMaxFragmentOffset),
                    .ttl = r.get8<8>(),
                    .protocol = r.get8<9>(),
                    .source = r.get32<12>(),
                    .destination = r.get32<16>()};
}

void IPv4Header::encode(std::span<u8, kSize> out) const {
  CHECK(dscp <= kMaxDSCP && fragment_offset <= kMaxFragmentOffset && total_length >= kSize);
  Writer<kSize> w(out);
  w.put8<0>(kVersionAndIHL);
  w.put8<1>(traffic_class_of(dscp, ecn));
  w.put16<2>(total_length);
  w.put16<4>(identification);
  w.put16<6>(static_cast<u16>((dont_fragment ? kDontFragment : u16{0}) |
                              (more_fragments ? kMoreFragments : u16{0}) | fragment_offset));
  w.put8<8>(ttl);
  w.put8<9>(protocol);
  w.put16<10>(0);
  w.put32<12>(source);
  w.put32<16>(destination);
  w.put16<10>(checksum_of(out));
}

}  // namespace verbena
