#include "wire/iwarp/rdmap.h"

#include "base/bytes.h"
#include "base/check.h"

namespace verbena::iwarp {
namespace {

constexpr u8 kOpcodeBits = 0x0f;
constexpr u8 kLength = 0x80, kDDPHeader = 0x40, kRDMAPHeader = 0x20;
// The same of a sender that counts bits from the lowest; reserved otherwise.
constexpr u8 kReversedLength = 0x01, kReversedDDP = 0x02, kReversedRDMAP = 0x04;
constexpr u8 kReversed = kReversedLength | kReversedDDP | kReversedRDMAP;
constexpr u8 kReversedMPA = 0x02;          // layer and type of an error of MPA, or else
constexpr u8 kFirstOperationError = 0x05;  // of RDMAP's remote operation errors

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

std::optional<RDMAPAtomicRequest> RDMAPAtomicRequest::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  const u8 opcode = r.get8<3>() & kOpcodeBits;
  if (opcode > static_cast<u8>(AtomicOpcode::kCompareSwap)) return std::nullopt;
  return RDMAPAtomicRequest{.opcode = static_cast<AtomicOpcode>(opcode),
                            .identifier = r.get32<4>(),
                            .stag = r.get32<8>(),
                            .offset = r.get64<12>(),
                            .add_or_swap = r.get64<20>(),
                            .add_or_swap_mask = r.get64<28>(),
                            .compare = r.get64<36>(),
                            .compare_mask = r.get64<44>()};
}

void RDMAPAtomicRequest::encode(std::span<u8, kSize> out) const {
  Writer<kSize> w(out);
  w.put32<0>(static_cast<u32>(opcode));
  w.put32<4>(identifier);
  w.put32<8>(stag);
  w.put64<12>(offset);
  w.put64<20>(add_or_swap);
  w.put64<28>(add_or_swap_mask);
  w.put64<36>(compare);
  w.put64<44>(compare_mask);
}

std::optional<RDMAPAtomicResponse> RDMAPAtomicResponse::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  return RDMAPAtomicResponse{.identifier = r.get32<0>(), .original = r.get64<4>()};
}

void RDMAPAtomicResponse::encode(std::span<u8, kSize> out) const {
  Writer<kSize> w(out);
  w.put32<0>(identifier);
  w.put64<4>(original);
}

std::optional<RDMAPTerminate> RDMAPTerminate::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  const u8 first = r.get8<0>(), code = r.get8<1>(), more = r.get8<2>();
  const u8 high = first >> 4, low = first & 0x0f;
  const bool reversed =
      (more & kReversed) != 0 || (first == kReversedMPA && code < kFirstOperationError);
  return RDMAPTerminate{
      .layer = reversed ? low : high,
      .type = reversed ? high : low,
      .code = r.get8<1>(),
      .has_length = (more & (reversed ? kReversedLength : kLength)) != 0,
      .has_ddp_header = (more & (reversed ? kReversedDDP : kDDPHeader)) != 0,
      .has_rdmap_header = (more & (reversed ? kReversedRDMAP : kRDMAPHeader)) != 0};
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
