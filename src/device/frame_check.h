// What every frame must pass before anything in it is believed: size, addresses, ICRC.
// IBTA Vol 1, 9.6; A16, A17.3.3; wire/roce/icrc.h tells of the Identification that a UDP socket
// never sees.
#pragma once

#include "device/frame.h"
#include "wire/roce/icrc.h"

namespace verbena {

enum class FrameFault : u8 {
  kNone,
  kSize,       // shorter than BTH and ICRC, or longer than any packet
  kAddresses,  // one IPv4 and one IPv6
  kICRC,
};

// `flow`: what it has seen of the frames before.
[[nodiscard]] FrameFault check_frame(const IngressFrame& frame, EnvelopeCRC& flow);
[[nodiscard]] inline FrameFault check_frame(const IngressFrame& frame) {
  EnvelopeCRC none;
  return check_frame(frame, none);
}
// BTH .. end of pad. Precondition: check_frame() gave kNone.
[[nodiscard]] inline Bytes without_icrc(const IngressFrame& frame) {
  return frame.transport.first(frame.transport.size() - kICRCSize);
}

}  // namespace verbena
