// How the two messages of snapshot.h begin. They travel as they lie in memory.
#pragma once

#include "base/types.h"

namespace verbena::host {

inline constexpr u32 kStatsQuestionMagic = 0x56425351, kStatsAnswerMagic = 0x56425341;
inline constexpr u32 kStatsVersion = 2;  // counts up where sizes stay and meanings change

struct StatsQuestionBytes {
  u32 magic = kStatsQuestionMagic, version = kStatsVersion;
  u64 nonce = 0;
  u32 first = 0, subject = 0;  // a place in a list, and a StatsSubject
};
static_assert(sizeof(StatsQuestionBytes) == 24);

// Behind it: one adapter, and the records: QPs, or other objects.
struct StatsAnswerHeader {
  u32 magic = kStatsAnswerMagic, version = kStatsVersion;
  u32 adapter_size = 0, record_size = 0;
  u64 nonce = 0;
  u32 record_count = 0, subject = 0;
};
static_assert(sizeof(StatsAnswerHeader) == 32);

}  // namespace verbena::host
