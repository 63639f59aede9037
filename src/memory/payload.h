// PayloadList: the places of one packet's payload, up to kMaxSGE pieces of resolved memory.
#pragma once

#include <array>
#include <span>

#include "memory/sge.h"

namespace verbena {

struct PayloadList {
  union {  // uninitialized, so that making a list, one for each packet, writes nothing
    std::array<Bytes, kMaxSGE> parts;  // the first `count` are set, none empty
  };
  u16 count = 0;
  u16 unstable = 0;    // above 0: others may change a part while it is read
  u32 size_bytes = 0;  // sum of the parts

  std::span<const Bytes> list() const { return std::span(parts).first(count); }

  PayloadList() {}
  void clear() {
    count = unstable = 0;
    size_bytes = 0;
  }
  void add_unstable(Bytes part) {
    unstable = 1;
    add(part);
  }
  void add(Bytes part) {
    if (part.empty()) return;
    parts[count++] = part;
    size_bytes += static_cast<u32>(part.size());
  }
};

}  // namespace verbena
