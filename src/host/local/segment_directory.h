// SegmentDirectory: where the segment (segment.h) of each process slot is: a small file beside that
// of Directory. What belongs to dead processes stays until another takes the slot; it leads to no
// segment.
#pragma once

#include "host/local/segment.h"

namespace verbena::host {

class SegmentDirectory {
 public:
  [[nodiscard]] static Expected<SegmentDirectory> open();

  [[nodiscard]] bool set(u32 slot, const SegmentPlace& place);
  [[nodiscard]] std::optional<SegmentPlace> find(u32 slot) const;

 private:
  explicit SegmentDirectory(Descriptor file) : file_(std::move(file)) {}

  Descriptor file_;
};

}  // namespace verbena::host
