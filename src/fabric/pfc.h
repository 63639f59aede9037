// Priority-based flow control: a frame that tells the neighbour to stop sending one priority, for
// so many quanta, or to go on. IEEE 802.1Q, 36.1; quanta: IEEE 802.3, 31B.2.
#pragma once

#include "base/rate.h"
#include "base/types.h"

namespace verbena::fabric {

inline constexpr u16 kLongestPause = 0xffff;  // quanta
inline constexpr u32 kQuantumBits = 512;

enum class PauseExpiry : u8 {
  kQuanta,  // as the standard has it: a pause ends by itself, and is asked for again before
  kNever,   // only a resume ends it
};

// PFC watchdog: a port whose neighbour pauses one priority for too long considers the neighbour
// broken. It drops the frames that wait there and those that arrive for it, and ignores pauses,
// until the neighbour has asked for none for a while. Guo et al., RDMA over Commodity Ethernet at
// Scale, SIGCOMM 2016, 4.3; the times are those of SONiC's (its "PFC Watchdog" design), action
// drop.
struct PFCWatchdogConfig {
  bool enabled = false;
  Duration detection = ms(200);    // without interruption
  Duration restoration = ms(200);  // without a pause
};

struct PFCConfig {
  bool enabled = true;
  PauseExpiry expiry = PauseExpiry::kQuanta;
  u16 quanta = kLongestPause;
  u16 frame_bytes = 64;
  u8 priorities = 0xff;  // that are without loss, a bit each; the others never pause, and lose
  PFCWatchdogConfig watchdog{};
};

[[nodiscard]] constexpr Duration pause_time(u16 quanta, Rate rate) {
  return rate.time_of(u64{quanta} * kQuantumBits / 8);
}

// Returns the bytes that can still arrive after a port has decided to pause its neighbour: the
// frame that the pause waits for, the pause itself, both directions of the link, and the frame that
// the neighbour has begun. IEEE 802.1Q, annex N.
[[nodiscard]] constexpr u32 headroom_for(Rate rate, Duration delay, u32 max_frame_bytes,
                                         const PFCConfig& pfc = {}) {
  const auto on_the_way = static_cast<u64>(static_cast<unsigned __int128>(rate.bps()) *
                                           static_cast<u64>((delay * 2).ps()) / 8'000'000'000'000);
  return static_cast<u32>(on_the_way) + 2 * max_frame_bytes + pfc.frame_bytes;
}

}  // namespace verbena::fabric
