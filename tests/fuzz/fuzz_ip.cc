// Input: an IP packet.
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "wire/eth/ethernet.h"
#include "wire/eth/ipv4.h"
#include "wire/eth/ipv6.h"
#include "wire/eth/udp.h"
#include "wire/roce/v2_packet.h"

namespace verbena::fuzz {
namespace {

void check_headers(std::span<const u8> in) {
  check_header<EthernetHeader>(in);
  check_header<VLANTag>(in);
  check_header<IPv4Header>(in);
  check_header<IPv6Header>(in);
  check_header<UDPHeader>(in);
}

void check_same_envelope(const RoCEv2View& view) {
  const std::size_t size = envelope_size(view.envelope);
  std::vector<u8> bytes(size + view.transport.size() + kICRCSize);
  encode_envelope(view.envelope, view.masked, view.transport.size(), bytes);
  const std::optional<RoCEv2View> again = RoCEv2View::decode(bytes);
  CHECK(again && again->envelope == view.envelope && again->masked == view.masked);
  CHECK(again->transport.size() == view.transport.size());
}

// The one Identification that solve_identification() finds is the one that makes the ICRC right.
void check_identification(const RoCEv2View& view) {
  if (!view.envelope.source.is_ipv4()) return;
  RoCEv2Envelope guess = view.envelope;
  guess.identification = 0;
  const std::optional<u16> found =
      solve_identification(icrc_of(guess, view.transport), view.icrc, view.transport.size());
  const bool good = icrc_of(view.envelope, view.transport) == view.icrc;
  CHECK(!good || found == view.envelope.identification);
  if (!found) return;
  guess.identification = *found;
  CHECK(icrc_of(guess, view.transport) == view.icrc);
}

}  // namespace
}  // namespace verbena::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const verbena::u8> in(data, size);
  verbena::fuzz::check_headers(in);
  const std::optional<verbena::RoCEv2View> view = verbena::RoCEv2View::decode(in);
  if (!view) return 0;
  CHECK(view->transport.size() >= verbena::BTH::kSize && view->transport.size() < size);
  verbena::fuzz::check_same_envelope(*view);
  verbena::fuzz::check_identification(*view);
  return 0;
}
