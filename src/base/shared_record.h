// SharedRecord: a small record in memory that several processes map. One of them writes it, the
// others read it, at any time. It is a sequence lock whose readers never wait: a reader that meets
// the writer gets nothing. Zeroed memory is a record of zeros.
// A reader may rely on one property only: the record is not a mixture of two records. It may rely
// on that only as far as it trusts the writer.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <type_traits>

#include "base/types.h"

namespace verbena {

template <typename Record>
class SharedRecord {
  static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) % sizeof(u64) == 0);
  using Words = std::array<u64, sizeof(Record) / sizeof(u64)>;

 public:
  void store(const Record& record) {
    const Words words = std::bit_cast<Words>(record);
    const u64 version = version_.load(std::memory_order_relaxed) | 1;
    version_.exchange(version, std::memory_order_acq_rel);  // before any word changes
    for (std::size_t i = 0; i < words.size(); ++i)
      words_[i].store(words[i], std::memory_order_release);
    version_.store(version + 1, std::memory_order_release);
  }

  // Returns false if the record is being written.
  [[nodiscard]] bool load(Record& record) const {
    const u64 before = version_.load(std::memory_order_acquire);
    if ((before & 1) != 0) return false;
    Words words;
    for (std::size_t i = 0; i < words.size(); ++i)
      words[i] = words_[i].load(std::memory_order_acquire);
    if (version_.load(std::memory_order_relaxed) != before) return false;
    record = std::bit_cast<Record>(words);
    return true;
  }

 private:
  std::atomic<u64> version_;  // odd: being written
  std::array<std::atomic<u64>, std::tuple_size_v<Words>> words_;
};

}  // namespace verbena
