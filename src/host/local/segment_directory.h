// SegmentDirectory: the place of the segment (segment.h) of each process slot: a small file beside
// that of Directory. The entry of a dead process stays until another takes the slot; it leads to no
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
