// WriteLog: the places where peers were recently allowed to write, for the checker. Off the data
// path: a table has one only on request (ProtectionTable::keep_write_log()).
#pragma once

#include <algorithm>
#include <array>

#include "memory/sge.h"

namespace verbena {

class WriteLog {
 public:
  static constexpr std::size_t kSize = 1024;  // places

  void add(Bytes bytes) {
    ++count_;
    Entry& latest = entries_[latest_];
    if (latest.where.data() + latest.where.size() == bytes.data()) {  // the same message goes on
      latest = {{latest.where.data(), latest.where.size() + bytes.size()}, count_};
      return;
    }
    latest_ = (latest_ + 1) % kSize;
    forgotten_ = entries_[latest_].number;
    entries_[latest_] = {bytes, count_};
  }
  [[nodiscard]] u64 count() const { return count_; }
  // Returns whether a write to `bytes` came after count() was `then`. Returns true also if that is
  // no longer known.
  [[nodiscard]] bool was_written_since(u64 then, Bytes bytes) const {
    return forgotten_ > then || std::ranges::any_of(entries_, [&](const Entry& entry) {
             return entry.number > then && overlap(entry.where, bytes);
           });
  }

 private:
  struct Entry {
    Bytes where;
    u64 number = 0;  // of the last write that belongs to it, from 1; 0: none yet
  };
  [[nodiscard]] static bool overlap(Bytes a, Bytes b) {
    return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
  }

  std::array<Entry, kSize> entries_{};
  std::size_t latest_ = 0;
  u64 count_ = 0, forgotten_ = 0;
};

}  // namespace verbena
