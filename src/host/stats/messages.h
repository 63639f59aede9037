// How the two messages of snapshot.h begin. They travel as they lie in memory.
#pragma once

#include "base/types.h"

namespace verbena::host {

inline constexpr u32 kStatsQuestionMagic = 0x56425351, kStatsAnswerMagic = 0x56425341;
inline constexpr u32 kStatsVersion = 1;  // counts up where sizes stay and meanings change

struct StatsQuestionBytes {
  u32 magic = kStatsQuestionMagic, version = kStatsVersion;
  u64 nonce = 0;
  u32 first_qpn = 0, reserved = 0;
};
static_assert(sizeof(StatsQuestionBytes) == 24);

// Behind it: one adapter, and the QPs.
struct StatsAnswerHeader {
  u32 magic = kStatsAnswerMagic, version = kStatsVersion;
  u32 adapter_size = 0, qp_size = 0;
  u64 nonce = 0;
  u32 qp_count = 0, reserved = 0;
};
static_assert(sizeof(StatsAnswerHeader) == 32);

}  // namespace verbena::host
