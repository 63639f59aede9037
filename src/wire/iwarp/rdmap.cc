#include "wire/iwarp/rdmap.h"

#include "base/bytes.h"
#include "base/check.h"

namespace verbena::iwarp {
namespace {

constexpr u8 kOpcodeBits = 0x0f;
constexpr u8 kLength = 0x80, kDDPHeader = 0x40, kRDMAPHeader = 0x20;

}  // namespace

std::optional<RDMAPOpcode> opcode_of(u8 control) {
  const u8 opcode = control & kOpcodeBits;
  if (control >> 6 != kRDMAPVersion || opcode > static_cast<u8>(RDMAPOpcode::kAtomicResponse))
    return std::nullopt;
  return static_cast<RDMAPOpcode>(opcode);
}

std::optional<RDMAPReadRequest> RDMAPReadRequest::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  return RDMAPReadRequest{.sink_stag = r.get32<0>(),
                          .sink_offset = r.get64<4>(),
                          .length = r.get32<12>(),
                          .source_stag = r.get32<16>(),
                          .source_offset = r.get64<20>()};
}

void RDMAPReadRequest::encode(std::span<u8, kSize> out) const {
  Writer<kSize> w(out);
  w.put32<0>(sink_stag);
  w.put64<4>(sink_offset);
  w.put32<12>(length);
  w.put32<16>(source_stag);
  w.put64<20>(source_offset);
}

std::optional<RDMAPTerminate> RDMAPTerminate::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  const u8 more = r.get8<2>();
  return RDMAPTerminate{.layer = static_cast<u8>(r.get8<0>() >> 4),
                        .type = static_cast<u8>(r.get8<0>() & 0x0f),
                        .code = r.get8<1>(),
                        .has_length = (more & kLength) != 0,
                        .has_ddp_header = (more & kDDPHeader) != 0,
                        .has_rdmap_header = (more & kRDMAPHeader) != 0};
}

void RDMAPTerminate::encode(std::span<u8, kSize> out) const {
  CHECK(layer < 16 && type < 16);
  Writer<kSize> w(out);
  w.put8<0>(static_cast<u8>(layer << 4 | type));
  w.put8<1>(code);
  w.put8<2>(static_cast<u8>((has_length ? kLength : 0) | (has_ddp_header ? kDDPHeader : 0) |
                            (has_rdmap_header ? kRDMAPHeader : 0)));
  w.put8<3>(0);
}

}  // namespace verbena::iwarp
