// The checks that every frame must pass before the device uses its content: size, addresses, ICRC.
// IBTA Vol 1, 9.6; A16, A17.3.3; wire/roce/icrc.h explains the Identification, which a UDP socket
// never sees.
#pragma once

#include <array>

#include "device/port/frame.h"
#include "wire/roce/icrc.h"

namespace verbena {

enum class FrameFault : u8 {
  kNone,
  kSize,       // shorter than BTH and ICRC, or longer than any packet
  kAddresses,  // one IPv4 and one IPv6
  kICRC,
};

// SeenSender: the record of a sender's datagrams, which guesses the unseen Identification. A sender
// has 0 with each datagram, or counts its datagrams.
struct SeenSender {
  GID address{};
  u16 udp_source_port = 0;
  u16 last = 0;         // Identification of its last datagram's first packet
  bool counts = false;  // its datagrams

  // `place`: of the packet in its datagram.
  [[nodiscard]] u16 guess(u16 place) const {
    return static_cast<u16>(last + (place == 0 && counts ? 1 : 0) + place);
  }
  void note(u16 place, u16 identification) {
    const u16 first = static_cast<u16>(identification - place);
    if (place == 0) counts = first != last;
    last = first;
  }
};

// SeenFrames: the records of earlier frames, for the check of later ones.
class SeenFrames {
 public:
  EnvelopeCRC envelopes;

  SeenSender& sender_of(const IngressFrame& frame);

 private:
  // By address and port; the last of those that collide.
  std::array<SeenSender, 64> senders_{};
};

// A wrong guess of the Identification costs time, and lets a random ICRC pass once in 2^16.
[[nodiscard]] FrameFault check_frame(const IngressFrame& frame, SeenFrames& seen);
[[nodiscard]] inline FrameFault check_frame(const IngressFrame& frame) {
  SeenFrames none;
  return check_frame(frame, none);
}
// BTH .. end of pad. Precondition: check_frame() gave kNone.
[[nodiscard]] inline Bytes without_icrc(const IngressFrame& frame) {
  return frame.transport.first(frame.transport.size() - kICRCSize);
}

}  // namespace verbena
