// ReplayWindow: which IVs of one PSP association have arrived. An IV is accepted once; one that is
// further behind the newest than the window is refused, since nothing is known of it. As IPsec's,
// RFC 4303, 3.4.3. A sender counts its IVs up.
#pragma once

#include <array>

#include "base/types.h"

namespace verbena {

class ReplayWindow {
 public:
  // More than the packets that several queues of a sender may reorder.
  static constexpr u64 kSize = 4096;

  // Returns whether `iv` may be accepted. Ask before the packet is decrypted.
  [[nodiscard]] bool is_new(u64 iv) const {
    if (iv > newest_) return true;
    if (newest_ - iv > kSize - kWordBits) return false;
    return (seen_[word_of(iv)] & bit_of(iv)) == 0 && iv != 0;
  }
  // Notes that the packet with `iv` is authentic. Precondition: is_new(iv).
  void note(u64 iv) {
    if (iv > newest_) advance_to(iv);
    seen_[word_of(iv)] |= bit_of(iv);
  }

 private:
  static constexpr u64 kWordBits = 64, kWords = kSize / kWordBits;
  static u64 word_of(u64 iv) { return iv / kWordBits % kWords; }
  static u64 bit_of(u64 iv) { return u64{1} << iv % kWordBits; }

  // Forgets what leaves the window. Whole words: the window covers kSize IVs, of which the oldest
  // word is cleared as the newest enters it.
  void advance_to(u64 iv) {
    const u64 from = newest_ / kWordBits, to = iv / kWordBits;
    if (to - from >= kWords)
      seen_.fill(0);
    else
      for (u64 word = from + 1; word <= to; ++word) seen_[word % kWords] = 0;
    newest_ = iv;
  }

  u64 newest_ = 0;  // IV 0 is never sent
  std::array<u64, kWords> seen_{};
};

}  // namespace verbena
