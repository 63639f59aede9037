// Targets: the memory that operations in flight may write to, to find out whether two write to the
// same. An entry is named by where it begins and how long it is.
#pragma once

#include <algorithm>
#include <map>

#include "memory/sge.h"

namespace verbena::check {

class Targets {
 public:
  // true: some byte of it was a target already.
  [[nodiscard]] bool insert(Bytes bytes) {
    const u64 start = reinterpret_cast<u64>(bytes.data());
    const bool overlaps = overlaps_any(start, start + bytes.size());
    of_.emplace(start, bytes.size());
    longest_ = std::max<u64>(longest_, bytes.size());
    return overlaps;
  }
  void erase(Bytes bytes) {
    const auto [from, to] = of_.equal_range(reinterpret_cast<u64>(bytes.data()));
    const auto found =
        std::find_if(from, to, [&](const auto& entry) { return entry.second == bytes.size(); });
    if (found != to) of_.erase(found);
  }

 private:
  [[nodiscard]] bool overlaps_any(u64 start, u64 end) const {
    for (auto at = of_.lower_bound(end); at != of_.begin();) {
      --at;
      if (at->first + at->second > start) return true;
      if (at->first + longest_ <= start) return false;
    }
    return false;
  }

  std::multimap<u64, u64> of_;  // start, length
  u64 longest_ = 0;             // of all that ever were
};

}  // namespace verbena::check
