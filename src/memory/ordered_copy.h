// ordered_copy: a copy whose last bytes become visible last.
// Programs that poll the end of a buffer for an RDMA WRITE rely on it, as they may with a card that
// writes in increasing address order. memcpy promises no order, so the tail is stored by itself.
#pragma once

#include <atomic>
#include <cstring>

#include "memory/sge.h"

namespace verbena {

inline void ordered_copy(u8* to, Bytes from) {
  std::size_t head = from.size() > 8 ? from.size() - 8 : 0;
  if (head != 0) {
    std::memcpy(to, from.data(), head);
    std::atomic_thread_fence(std::memory_order_release);
  }
  const u8* tail = from.data() + head;
  switch (from.size() - head) {
    case 8: std::memcpy(to + head, tail, 8); return;  // one store each
    case 4: std::memcpy(to + head, tail, 4); return;
    case 2: std::memcpy(to + head, tail, 2); return;
    default:
      for (; head < from.size(); ++head) to[head] = *tail++;
  }
}

}  // namespace verbena
