#include "wire/ib/bth.h"

#include "base/bytes.h"
#include "base/check.h"

namespace verbena {
namespace {

constexpr u8 kSolicitedEvent = 0x80;
constexpr u8 kMigReq = 0x40;
constexpr int kPadShift = 4;
constexpr u8 kPadMask = 0x3;
constexpr u8 kTVerMask = 0xf;
constexpr u8 kFECN = 0x80;
constexpr u8 kBECN = 0x40;
constexpr u8 kAckReq = 0x80;
constexpr u8 kTakesSack = 0x40;

constexpr u8 when(bool set, u8 mask) { return set ? mask : u8{0}; }

}  // namespace

std::optional<BTH> BTH::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  const u8 flags = r.get8<1>();
  if ((flags & kTVerMask) != 0) return std::nullopt;
  const u8 ecn = r.get8<4>();
  const u8 asked = r.get8<8>();
  return BTH{.opcode = Opcode::from_byte(r.get8<0>()),
             .solicited_event = (flags & kSolicitedEvent) != 0,
             .mig_req = (flags & kMigReq) != 0,
             .pad_count = static_cast<u8>((flags >> kPadShift) & kPadMask),
             .p_key = PKey{r.get16<2>()},
             .fecn = (ecn & kFECN) != 0,
             .becn = (ecn & kBECN) != 0,
             .dest_qp = QPN{r.get24<5>()},
             .ack_req = (asked & kAckReq) != 0,
             .takes_sack = (asked & kTakesSack) != 0,
             .psn = PSN{r.get24<9>()}};
}

void BTH::encode(std::span<u8, kSize> out) const {
  CHECK(pad_count <= kPadMask && dest_qp.value <= kMask24);
  Writer<kSize> w(out);
  w.put8<0>(opcode.to_byte());
  w.put8<1>(static_cast<u8>(when(solicited_event, kSolicitedEvent) | when(mig_req, kMigReq) |
                            (pad_count << kPadShift)));
  w.put16<2>(p_key.value);
  w.put8<4>(static_cast<u8>(when(fecn, kFECN) | when(becn, kBECN)));
  w.put24<5>(dest_qp.value);
  w.put8<8>(static_cast<u8>(when(ack_req, kAckReq) | when(takes_sack, kTakesSack)));
  w.put24<9>(psn.value());
}

}  // namespace verbena
