// SharedSpan: a part of a region that lies in a file, so that other processes of the host can map
// the same pages (MAP_SHARED): a memfd, or a file of a memory file system.
#pragma once

#include "base/types.h"

namespace verbena {

struct SharedSpan {
  u64 address = 0, length = 0;     // in the process that has published it; whole pages
  u64 offset = 0;                  // of `address` in the file
  u64 device = 0, inode = 0;       // identity of the file. stat(2)
  u32 descriptor = 0, unused = 0;  // of the file, in that process

  friend bool operator==(const SharedSpan&, const SharedSpan&) = default;
};

}  // namespace verbena
