// PayloadList: where the payload of one packet lies: up to kMaxSGE pieces of resolved memory.
#pragma once

#include <array>

#include "memory/sge.h"

namespace verbena {

struct PayloadList {
  std::array<Bytes, kMaxSGE> parts;  // the first `count` are set, none empty
  u32 count = 0;
  u32 size_bytes = 0;  // sum of the parts

  PayloadList() {}  // leaves parts uninitialized on purpose: one is made per packet
  void clear() { count = size_bytes = 0; }
  void add(Bytes part) {
    if (part.empty()) return;
    parts[count++] = part;
    size_bytes += static_cast<u32>(part.size());
  }
};

}  // namespace verbena
