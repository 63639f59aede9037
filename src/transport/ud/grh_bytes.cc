#include "transport/ud/grh_bytes.h"

#include "base/bytes.h"

namespace verbena {
namespace {

constexpr std::size_t kIPv4HeaderSize = 20;  // bytes
constexpr u16 kUDPHeaderSize = 8;            // bytes; lies between the IP header and the BTH
constexpr u8 kProtocolUDP = 17;
constexpr u16 kDontFragment = 0x4000;

// RFC 1071, over the whole header with its checksum field 0.
u16 checksum_of(std::span<const u8, kIPv4HeaderSize> header) {
  u32 sum = 0;
  for (std::size_t at = 0; at < header.size(); at += 2) sum += load_be16(header.data() + at);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<u16>(~(sum + (sum >> 16)));
}

// RFC 791, 3.1.
void encode_ipv4(const RxContext& context, std::span<u8, kIPv4HeaderSize> out) {
  Writer<kIPv4HeaderSize> w(out);
  w.put8<0>(0x45);  // version 4, five words
  w.put8<1>(context.traffic_class);
  w.put16<2>(static_cast<u16>(kIPv4HeaderSize + kUDPHeaderSize + context.transport_bytes));
  w.put16<4>(0);
  w.put16<6>(kDontFragment);
  w.put8<8>(context.hop_limit);
  w.put8<9>(kProtocolUDP);
  w.put16<10>(0);
  w.put32<12>(context.source.ipv4());
  w.put32<16>(context.destination.ipv4());
  w.put16<10>(checksum_of(out));
}

// Makes the IPv6 header of RoCEv2, or the GRH of RoCEv1.
GRH grh_of(const RxContext& context) {
  const bool has_udp = context.type == GIDType::kRoCEv2;
  const std::size_t udp_size = has_udp ? kUDPHeaderSize : 0;
  return {.traffic_class = context.traffic_class,
          .payload_length = static_cast<u16>(udp_size + context.transport_bytes),
          .next_header = has_udp ? kProtocolUDP : kNextHeaderIBA,
          .hop_limit = context.hop_limit,
          .sgid = context.source,
          .dgid = context.destination};
}

}  // namespace

std::array<u8, GRH::kSize> grh_bytes(const RxContext& context) {
  std::array<u8, GRH::kSize> out{};
  const std::span<u8, GRH::kSize> all(out);
  if (context.type == GIDType::kRoCEv2 && context.destination.is_ipv4())
    encode_ipv4(context, all.last<kIPv4HeaderSize>());
  else
    grh_of(context).encode(all);
  return out;
}

}  // namespace verbena
