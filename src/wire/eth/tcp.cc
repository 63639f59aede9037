#include "wire/eth/tcp.h"

#include "base/bytes.h"
#include "base/check.h"
#include "wire/eth/internet_checksum.h"
#include "wire/eth/ipv4.h"

namespace verbena {

std::optional<TCPHeader> TCPHeader::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  const u8 words = static_cast<u8>(r.get8<12>() >> 4);
  if (words < kSize / 4) return std::nullopt;
  return TCPHeader{.source_port = r.get16<0>(),
                   .destination_port = r.get16<2>(),
                   .sequence = r.get32<4>(),
                   .acknowledgement = r.get32<8>(),
                   .words = words,
                   .flags = r.get8<13>(),
                   .window = r.get16<14>(),
                   .checksum = r.get16<16>(),
                   .urgent_pointer = r.get16<18>()};
}

void TCPHeader::encode(std::span<u8, kSize> out) const {
  CHECK(words >= kSize / 4 && words <= 15);
  Writer<kSize> w(out);
  w.put16<0>(source_port);
  w.put16<2>(destination_port);
  w.put32<4>(sequence);
  w.put32<8>(acknowledgement);
  w.put8<12>(static_cast<u8>(words << 4));
  w.put8<13>(flags);
  w.put16<14>(window);
  w.put16<16>(checksum);
  w.put16<18>(urgent_pointer);
}

u16 tcp_checksum(u32 source, u32 destination, std::span<const u8> segment) {
  InternetChecksum sum;
  for (const u32 address : {source, destination}) {
    sum.add16(static_cast<u16>(address >> 16));
    sum.add16(static_cast<u16>(address));
  }
  sum.add16(kProtocolTCP);
  sum.add16(static_cast<u16>(segment.size()));
  sum.add(segment);
  return sum.finish();
}

}  // namespace verbena
