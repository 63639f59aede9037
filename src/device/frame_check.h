// What every frame must pass before anything in it is believed: size, addresses, ICRC.
// IBTA Vol 1, 9.6; A16, A17.3.3; wire/roce/icrc.h tells of the Identification that a UDP socket
// never sees.
#pragma once

#include <array>

#include "device/frame.h"
#include "wire/roce/icrc.h"

namespace verbena {

enum class FrameFault : u8 {
  kNone,
  kSize,       // shorter than BTH and ICRC, or longer than any packet
  kAddresses,  // one IPv4 and one IPv6
  kICRC,
};

// Guesses the Identification that nobody has seen. A wrong guess costs time, and lets a random ICRC
// pass once in 2^16. A sender has 0 with each datagram, or counts its datagrams.
class IdentificationGuess {
 public:
  // `place`: of the packet in its datagram.
  [[nodiscard]] u16 guess(const IngressFrame& frame, u16 place) {
    const Sender& sender = find(frame);
    return static_cast<u16>(sender.last + (place == 0 && sender.counts ? 1 : 0) + place);
  }
  // That it was `identification`.
  void note(const IngressFrame& frame, u16 place, u16 identification);

 private:
  struct Sender {
    GID address{};
    u16 udp_port = 0;
    u16 last = 0;  // of its last datagram's first packet
    bool counts = false;
  };
  static constexpr std::size_t kSenders = 64;

  Sender& find(const IngressFrame& frame);

  std::array<Sender, kSenders> senders_{};  // by address and port; the last of those that collide
};

// What has been seen of the frames before, for the next ones.
struct SeenFrames {
  EnvelopeCRC envelopes;
  IdentificationGuess identifications;
};

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
