#include "device/port/frame_check.h"

#include "wire/ib/lid_address.h"
#include "wire/ib/lrh.h"
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

u32 expected_icrc_of_local(const IngressFrame& frame) {
  const LRH lrh{.service_level = sl_of_traffic_class(frame.traffic_class),
                .dlid = frame.dlid,
                .packet_words = static_cast<u16>((LRH::kSize + frame.transport.size()) / 4),
                .slid = lid_of_address(frame.source)};
  return icrc_of_local(lrh, without_icrc(frame));
}

bool is_right(const IngressFrame& frame, u32 received, EnvelopeCRC& envelopes) {
  if (expected_icrc(frame, envelopes, frame.identification) == received) return true;
  return frame.other_identification.has_value() &&
         expected_icrc(frame, envelopes, *frame.other_identification) == received;
}

// The guess first, since it is right nearly always; then which Identification would do.
bool may_be_right(const IngressFrame& frame, u32 received, SeenFrames& seen) {
  const u16 place = frame.identification;
  SeenSender& sender = seen.sender_of(frame);
  const u16 guess = sender.guess(place);
  const u32 icrc = expected_icrc(frame, seen.envelopes, guess);
  u16 change = 0;
  if (icrc != received) {
    const auto solved = solve_identification(icrc, received, without_icrc(frame).size());
    if (!solved) return false;
    change = *solved;
  }
  sender.note(place, guess ^ change);
  return true;
}

bool icrc_holds(const IngressFrame& frame, SeenFrames& seen) {
  const u32 received = load_icrc(frame.transport.last<kICRCSize>());
  if (frame.type == GIDType::kRoCEv1) return expected_icrc_of_v1(frame) == received;
  if (frame.type == GIDType::kInfiniBand) return expected_icrc_of_local(frame) == received;
  if (frame.identification_known || !frame.source.is_ipv4())
    return is_right(frame, received, seen.envelopes);
  return may_be_right(frame, received, seen);
}

}  // namespace

SeenSender& SeenFrames::sender_of(const IngressFrame& frame) {
  SeenSender& sender =
      senders_[(frame.source.ipv4() * 7 + frame.udp_source_port) % senders_.size()];
  if (sender.udp_source_port != frame.udp_source_port || sender.address != frame.source)
    sender = {.address = frame.source, .udp_source_port = frame.udp_source_port};
  return sender;
}

FrameFault check_frame(const IngressFrame& frame, SeenFrames& seen) {
  const std::size_t size = frame.transport.size();
  if (size < kMinFrameSize || size > kMaxFrameSize) return FrameFault::kSize;
  if (frame.source.is_ipv4() != frame.destination.is_ipv4()) return FrameFault::kAddresses;
  return frame.authenticated || icrc_holds(frame, seen) ? FrameFault::kNone : FrameFault::kICRC;
}

}  // namespace verbena
