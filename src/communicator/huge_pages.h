// HugePages: large buffers that are used again and again get huge pages (MADV_COLLAPSE, Linux 6.1).
// A copy between processes finds the pages of the other one by one, and is twice as fast and more
// where they are huge. VERBENA_HUGE=off leaves them alone, as for Verbena's device.
#pragma once

#include <deque>

#include "base/types.h"

namespace verbena::coll {

class HugePages {
 public:
  HugePages();
  // The range is about to be registered for an operation. The second time it becomes huge.
  void on_use(const void* address, u64 bytes);

 private:
  static constexpr u64 kLeastBytes = 4u << 20, kMostBytes = 256u << 20;
  static constexpr std::size_t kRemembered = 64;
  struct Range {
    const void* address = nullptr;
    u64 bytes = 0;
    bool is_huge = false;
  };
  std::deque<Range> ranges_{};
  bool is_off_ = false;
};

}  // namespace verbena::coll
