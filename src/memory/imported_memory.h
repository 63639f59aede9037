// Memory of another process, from which a region may be made (ibv_import_mr(3)): the kind of far
// memory that a driver copies at once, by calls.
#pragma once

#include "memory/far_memory.h"

namespace verbena {

class ImportedMemory : public FarMemory {
 public:
  // Both copy [offset, offset + size) of the region; the range lies inside of it. They return false
  // if some byte does not exist, or the region has ended; bytes before it may have been copied.
  [[nodiscard]] virtual bool read(u64 offset, MutableBytes to) = 0;
  [[nodiscard]] virtual bool write(u64 offset,
                                   Bytes from) = 0;  // the last bytes become visible last

  // A copy is not atomic, so such a region has no atomic right and no atomic job.
  [[nodiscard]] CopyState begin(CopyJob& job) final {
    const bool is_done = job.op == CopyOp::kRead    ? read(job.offset, {job.bytes, job.length})
                         : job.op == CopyOp::kWrite ? write(job.offset, {job.bytes, job.length})
                                                    : false;
    return is_done ? CopyState::kDone : CopyState::kGone;
  }
};

}  // namespace verbena
