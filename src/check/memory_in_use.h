// MemoryInUse: the memory of operations in flight, to find overlaps with other operations. Start
// and length name an entry; several entries may have the same name.
#pragma once

#include <algorithm>
#include <map>

#include "memory/sge.h"

namespace verbena::check {

class MemoryInUse {
 public:
  void insert(Bytes bytes) {
    of_.emplace(start_of(bytes), bytes.size());
    longest_ = std::max<u64>(longest_, bytes.size());
  }
  void erase(Bytes bytes) {
    const auto [from, to] = of_.equal_range(start_of(bytes));
    const auto found =
        std::find_if(from, to, [&](const auto& entry) { return entry.second == bytes.size(); });
    if (found != to) of_.erase(found);
  }
  [[nodiscard]] bool overlaps(Bytes bytes) const {
    const u64 start = start_of(bytes);
    for (auto at = of_.lower_bound(start + bytes.size()); at != of_.begin();) {
      --at;
      if (at->first + at->second > start) return true;
      if (at->first + longest_ <= start) return false;
    }
    return false;
  }

 private:
  [[nodiscard]] static u64 start_of(Bytes bytes) { return reinterpret_cast<u64>(bytes.data()); }

  std::multimap<u64, u64> of_;  // start, length
  u64 longest_ = 0;             // of all entries that ever existed
};

}  // namespace verbena::check
