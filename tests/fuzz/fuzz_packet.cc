// Input: BTH and what follows, without the ICRC.
#include <algorithm>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "wire/ib/grh.h"
#include "wire/ib/lrh.h"
#include "wire/ib/packet.h"
#include "wire/roce/cnp.h"

namespace verbena::fuzz {
namespace {

void check_headers(std::span<const u8> in) {
  check_header<BTH>(in);
  check_header<RETH>(in);
  check_header<AETH>(in);
  check_header<AtomicETH>(in);
  check_header<AtomicAckETH>(in);
  check_header<DETH>(in);
  check_header<ImmDt>(in);
  check_header<IETH>(in);
  check_header<XRCETH>(in);
  check_header<GRH>(in);
  check_header<LRH>(in);
}

std::vector<u8> encoded(const PacketView& packet) {
  std::vector<u8> bytes(packet.headers.size());
  packet.headers.encode(bytes);
  bytes.insert(bytes.end(), packet.payload.begin(), packet.payload.end());
  bytes.resize(bytes.size() + packet.headers.bth.pad_count);
  return bytes;
}

void check_packet(std::span<const u8> in) {
  const std::optional<PacketView> packet = PacketView::decode(in);
  if (!packet) return;
  const OpcodeTraits& traits = traits_of(packet->headers.bth.opcode);
  CHECK(traits.valid && (traits.payload || packet->payload.empty()));
  CHECK(!is_cnp(*packet) || in.size() >= kCNPSize);

  const std::vector<u8> bytes = encoded(*packet);
  CHECK(bytes.size() == in.size());
  const std::optional<PacketView> again = PacketView::decode(bytes);
  CHECK(again && again->headers == packet->headers);
  CHECK(std::ranges::equal(again->payload, packet->payload));
  CHECK(encoded(*again) == bytes);
}

}  // namespace
}  // namespace verbena::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const verbena::u8> in(data, size);
  verbena::fuzz::check_headers(in);
  verbena::fuzz::check_packet(in);
  return 0;
}
