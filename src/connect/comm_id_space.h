// CommIdSpace: draws the Communication IDs of one process. A MAD that names such an ID finds the
// process: the upper 10 bits are the process's slot in the host's directory. The lower 22 bits are
// random, so that a stray or forged MAD seldom names a live connection. IBTA Vol 1, 12.7.1. Never
// draws 0 in the lower bits: 0 means "not known yet" on the wire.
#pragma once

#include "base/check.h"
#include "base/prng.h"
#include "base/types.h"
#include "wire/ib/cm/ids.h"

namespace verbena {

using ProcessSlot = Id<struct ProcessSlotTag, u16>;

inline constexpr int kCommIdRandomBits = 22;
inline constexpr u16 kMaxProcessSlot = 1023;

constexpr ProcessSlot process_slot_of(CommId id) {
  return ProcessSlot{static_cast<u16>(id.value >> kCommIdRandomBits)};
}

class CommIdSpace {
 public:
  explicit CommIdSpace(ProcessSlot slot) : prefix_(u32{slot.value} << kCommIdRandomBits) {
    CHECK(slot.value <= kMaxProcessSlot);
  }
  // The result may be in use already: then the caller draws again.
  CommId draw(PRNG& prng) const {
    return CommId{prefix_ | static_cast<u32>(prng.in(1, (u64{1} << kCommIdRandomBits) - 1))};
  }

 private:
  u32 prefix_;
};

}  // namespace verbena
