#include "device/frame_check.h"

#include "wire/ib/mtu.h"

namespace verbena {
namespace {

constexpr std::size_t kMinFrameSize = BTH::kSize + kICRCSize;
constexpr std::size_t kMaxFrameSize = kMaxHeadersSize + bytes(MTU::k4096) + kICRCSize;

u32 expected_icrc(const IngressFrame& frame, EnvelopeCRC& flow, u16 identification) {
  return icrc_of(flow,
                 {.source = frame.source,
                  .destination = frame.destination,
                  .udp_source_port = frame.udp_source_port,
                  .identification = identification},
                 without_icrc(frame));
}

u32 expected_icrc_of_v1(const IngressFrame& frame) {
  return icrc_of_v1({.payload_length = static_cast<u16>(frame.transport.size()),
                     .sgid = frame.source,
                     .dgid = frame.destination},
                    without_icrc(frame));
}

// The guess first, since it is right nearly always; then which Identification would do.
bool icrc_holds(const IngressFrame& frame, EnvelopeCRC& flow) {
  const u32 received = load_icrc(frame.transport.last<kICRCSize>());
  if (frame.type == GIDType::kRoCEv1) return expected_icrc_of_v1(frame) == received;
  const u32 guessed = expected_icrc(frame, flow, frame.identification);
  if (guessed == received) return true;
  if (!frame.source.is_ipv4()) return false;
  if (frame.identification_known && !frame.other_identification) return false;
  const std::optional<u16> change =
      solve_identification(guessed, received, without_icrc(frame).size());
  if (!change) return false;
  return !frame.identification_known ||
         (frame.identification ^ *change) == *frame.other_identification;
}

}  // namespace

FrameFault check_frame(const IngressFrame& frame, EnvelopeCRC& flow) {
  const std::size_t size = frame.transport.size();
  if (size < kMinFrameSize || size > kMaxFrameSize) return FrameFault::kSize;
  if (frame.source.is_ipv4() != frame.destination.is_ipv4()) return FrameFault::kAddresses;
  return icrc_holds(frame, flow) ? FrameFault::kNone : FrameFault::kICRC;
}

}  // namespace verbena
