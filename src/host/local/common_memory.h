// CommonMemory: memory of this process that other processes of the host can map too, so that peers
// reach it without a system call: what the program mapped MAP_SHARED from a memfd or a file of a
// memory file system; or, where the user asks for it (VERBENA_SHARE=on), the whole pages of private
// anonymous memory, which are then replaced by those of a memfd (replaced_memory.h), until the last
// region of them is gone.
// All other memory (files on disks, huge pages of hugetlbfs, stacks, special mappings) stays as it
// is: peers copy, or send packets.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "host/os/descriptor.h"
#include "memory/shared_span.h"

namespace verbena::host {

enum class Sharing { kAsFound, kReplace };

// SharedFile: a file that is held open, so that peers find it in /proc/PID/fd; one for each file.
class SharedFile {
 public:
  explicit SharedFile(Descriptor file) : file_(std::move(file)) {}
  [[nodiscard]] int fd() const { return file_.get(); }

 private:
  Descriptor file_;
};

struct CommonMemory {
  SharedSpan span;
  std::shared_ptr<const SharedFile> file;  // for as long as the span is published
};

// Returns the common memory of `memory` or of a part of it, or nullopt if none of it can be common.
// Thread-safe.
[[nodiscard]] std::optional<CommonMemory> common_memory_of(std::span<const u8> memory,
                                                           Sharing sharing);

}  // namespace verbena::host
