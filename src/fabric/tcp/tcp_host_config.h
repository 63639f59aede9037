// Settings of a simulated host that speaks TCP, or iWARP in it.
#pragma once

#include "fabric/pfc.h"
#include "transport/tcp/config.h"

namespace verbena::fabric {

struct TCPHostConfig {
  static constexpr u32 kFrameOverhead = 14 + 20 + 20 + 4;  // MAC, IPv4, TCP without options, FCS

  enum class Framing : u8 { kStream, kIWARP };
  Framing framing = Framing::kStream;
  tcp::Config tcp{};
  Duration posting{};     // from the program's call to TCP
  Duration completion{};  // from TCP to the program
  u16 pause_frame_bytes = 64;
  PauseExpiry pause_expiry = PauseExpiry::kQuanta;

  // Returns the bytes of the frame of a full segment, with timestamps.
  [[nodiscard]] u32 longest_frame() const;
};

}  // namespace verbena::fabric
