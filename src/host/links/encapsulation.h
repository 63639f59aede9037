// Encapsulation: the wrapper that a link puts around the packets of one path, as the last stage of
// the frame codec: PSP, which encrypts, or VXLAN.
#pragma once

#include <span>

#include "device/port/frame.h"

namespace verbena::host {

class Encapsulation {
 public:
  virtual ~Encapsulation() = default;

  // Bytes before the transport packet, and behind its ICRC.
  [[nodiscard]] std::size_t head_bytes() const { return head_bytes_; }
  [[nodiscard]] std::size_t tail_bytes() const { return tail_bytes_; }
  [[nodiscard]] std::size_t overhead() const { return head_bytes_ + tail_bytes_; }

  // Completes `packet`: head, transport packet with its ICRC, tail. All but head and tail is there.
  // An IP header in the head has the Identification 0, as the ICRC does.
  virtual void finish(const EgressFrame& frame, u16 udp_source_port, std::span<u8> packet) = 0;

 protected:
  Encapsulation(std::size_t head_bytes, std::size_t tail_bytes)
      : head_bytes_(head_bytes), tail_bytes_(tail_bytes) {}
  Encapsulation(const Encapsulation&) = default;
  Encapsulation& operator=(const Encapsulation&) = default;

 private:
  std::size_t head_bytes_, tail_bytes_;
};

}  // namespace verbena::host
