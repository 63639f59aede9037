// Whether two ends are members of one partition. IBTA Vol 1, 10.9.3.
#pragma once

#include "base/types.h"

namespace verbena {

// The same base, not 0, and at least one of the two a full member (bit 15).
constexpr bool p_keys_match(PKey ours, PKey theirs) {
  constexpr u16 kFullMember = 0x8000;
  const u16 base = ours.value & 0x7fff;
  return base != 0 && base == (theirs.value & 0x7fff) &&
         ((ours.value | theirs.value) & kFullMember) != 0;
}

}  // namespace verbena
