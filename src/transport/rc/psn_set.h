// PSNSet: a set of PSNs of a sliding window: a bit each, found by the PSN's lower bits. One
// allocation at construction. PSNs that are further apart than `window` are never in it together,
// so that one word holds PSNs of one run of 64 only. The caller that moves the window removes the
// PSNs that leave it.
#pragma once

#include <bit>
#include <vector>

#include "base/psn.h"

namespace verbena {

class PSNSet {
 public:
  static constexpr u32 kWordBits = 64;

  explicit PSNSet(u32 window)
      : mask_(std::bit_ceil(window + kWordBits) - 1), words_((mask_ + 1) / kWordBits) {}

  u32 slots() const { return mask_ + 1; }                  // slot() is below this
  u32 slot(PSN psn) const { return psn.value() & mask_; }  // unique within a window
  static PSN first_of_word(PSN psn) { return PSN(psn.value() & ~(kWordBits - 1)); }
  bool has(PSN psn) const { return (word(psn) & bit(psn)) != 0; }
  // Returns the bits of all PSNs that share a word with `psn`: bit i is first_of_word(psn) + i.
  u64 word(PSN psn) const { return words_[slot(psn) / kWordBits]; }

  void add(PSN psn) { words_[slot(psn) / kWordBits] |= bit(psn); }
  void remove(PSN psn) { words_[slot(psn) / kWordBits] &= ~bit(psn); }
  void clear() { words_.assign(words_.size(), 0); }

 private:
  static u64 bit(PSN psn) { return u64{1} << psn.value() % kWordBits; }

  u32 mask_;
  std::vector<u64> words_;
};

}  // namespace verbena
