#include "wire/ib/packet.h"

#include "base/check.h"

namespace verbena {
namespace {

// Writes headers one after the other.
class HeaderWriter {
 public:
  explicit HeaderWriter(std::span<u8> out) : out_(out) {}
  template <typename Header>
  void put(const Header& header) {
    header.encode(out_.first<Header::kSize>());
    out_ = out_.subspan(Header::kSize);
  }

 private:
  std::span<u8> out_;
};

// Reads headers one after the other, from a span that is known to hold them all.
class HeaderReader {
 public:
  explicit HeaderReader(std::span<const u8> in) : in_(in) {}
  // Returns false if the header has a value that the spec forbids.
  template <typename Header>
  bool get(Header& header) {
    const std::optional<Header> decoded = Header::decode(in_);
    in_ = in_.subspan(Header::kSize);
    if (!decoded) return false;
    header = *decoded;
    return true;
  }

 private:
  std::span<const u8> in_;
};

// Decodes in the order of the wire. IBTA Vol 1, 9.2 and Annexes A14, A19.
bool decode_extended(const OpcodeTraits& traits, std::span<const u8> in, PacketHeaders& h) {
  HeaderReader r(in);
  if (traits.xrceth && !r.get(h.xrceth)) return false;
  if (traits.deth && !r.get(h.deth)) return false;
  if (traits.feth && !r.get(h.feth)) return false;
  if (traits.reth && !r.get(h.reth)) return false;
  if (traits.atomic_eth && !r.get(h.atomic)) return false;
  if (traits.aeth && !r.get(h.aeth)) return false;
  if (traits.atomic_ack_eth && !r.get(h.atomic_ack)) return false;
  if (traits.imm_dt && !r.get(h.imm)) return false;
  if (traits.ieth && !r.get(h.ieth)) return false;
  if (traits.sack_eth && !r.get(h.sack)) return false;
  return true;
}

}  // namespace

void PacketHeaders::encode(std::span<u8> out) const {
  const OpcodeTraits& traits = traits_of(bth.opcode);
  CHECK(traits.valid && out.size() >= traits.headers_size);
  HeaderWriter w(out);
  w.put(bth);
  if (traits.xrceth) w.put(xrceth);
  if (traits.deth) w.put(deth);
  if (traits.feth) w.put(feth);
  if (traits.reth) w.put(reth);
  if (traits.atomic_eth) w.put(atomic);
  if (traits.aeth) w.put(aeth);
  if (traits.atomic_ack_eth) w.put(atomic_ack);
  if (traits.imm_dt) w.put(imm);
  if (traits.ieth) w.put(ieth);
  if (traits.sack_eth) w.put(sack);
}

bool PacketView::assign(std::span<const u8> in) {
  const std::optional<BTH> bth = BTH::decode(in);
  if (!bth) return false;
  const OpcodeTraits& traits = traits_of(bth->opcode);
  if (!traits.valid || in.size() < traits.headers_size) return false;
  const std::span<const u8> body = in.subspan(traits.headers_size);
  if (body.size() < bth->pad_count || (!traits.payload && !body.empty())) return false;
  headers.bth = *bth;
  payload = body.first(body.size() - bth->pad_count);
  return decode_extended(traits, in.subspan(BTH::kSize), headers);
}

bool PacketView::assign(std::span<const u8> headers_in, std::span<const u8> payload_in) {
  const std::optional<BTH> bth = BTH::decode(headers_in);
  if (!bth) return false;
  const OpcodeTraits& traits = traits_of(bth->opcode);
  if (!traits.valid || headers_in.size() != traits.headers_size) return false;
  if (!traits.payload && !payload_in.empty()) return false;
  headers.bth = *bth;
  payload = payload_in;
  return decode_extended(traits, headers_in.subspan(BTH::kSize), headers);
}

// Both have one return, so that the view, which is large, is built in the caller's object.
std::optional<PacketView> PacketView::decode(std::span<const u8> in) {
  std::optional<PacketView> packet(std::in_place);
  if (!packet->assign(in)) packet.reset();
  return packet;
}

std::optional<PacketView> PacketView::decode(std::span<const u8> headers,
                                             std::span<const u8> payload) {
  std::optional<PacketView> packet(std::in_place);
  if (!packet->assign(headers, payload)) packet.reset();
  return packet;
}

}  // namespace verbena
