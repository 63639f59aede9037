// PageMemory: zeroed memory of whole pages, which is there from the start. Long memory lies in huge
// pages if the kernel has some: a copy from or to another process's memory then takes a third of
// the time, because the kernel looks up one page instead of 512.
//
// Common memory is that of a file which peers on the same host can map. Verbena's device finds the
// file when the memory is registered, and peers then copy without a system call.
#pragma once

#include <optional>
#include <utility>

#include "base/types.h"

namespace verbena::verbs {

class PageMemory {
 public:
  static constexpr u64 kHugeBytes = u64{2} << 20;

  // kCommon takes a descriptor, and is private memory where the kernel gives no file.
  enum class Sharing : u8 { kPrivate, kCommon };

  PageMemory() = default;
  // Returns nullopt if there is no memory.
  [[nodiscard]] static std::optional<PageMemory> make(u64 bytes, Sharing sharing);
  ~PageMemory();
  PageMemory(PageMemory&& other) noexcept { *this = std::move(other); }
  PageMemory& operator=(PageMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(file_, other.file_);
    return *this;
  }

  [[nodiscard]] u8* data() const { return data_; }

 private:
  u8* data_ = nullptr;
  u64 bytes_ = 0;
  int file_ = -1;  // of common memory; the device looks for it among our descriptors
};

}  // namespace verbena::verbs
