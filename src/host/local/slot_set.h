// SlotSet: process slots, in memory that several processes share. Zeroed memory: none.
#pragma once

#include <array>
#include <atomic>
#include <bit>

#include "base/types.h"
#include "host/sharing/qpn_slot.h"

namespace verbena::host {

class SlotSet {
 public:
  void add(u32 slot) { words_[slot / 64].fetch_or(u64{1} << slot % 64, std::memory_order_seq_cst); }
  // Takes all out, and calls visit(slot) for each.
  template <typename Visit>
  void take(const Visit& visit) {
    for (u32 word = 0; word < words_.size(); ++word) {
      if (words_[word].load(std::memory_order_seq_cst) == 0) continue;
      for (u64 bits = words_[word].exchange(0); bits != 0; bits &= bits - 1)
        visit(word * 64 + static_cast<u32>(std::countr_zero(bits)));
    }
  }

 private:
  std::array<std::atomic<u64>, (kLastSlot + 64) / 64> words_;
};

}  // namespace verbena::host
