// CudaRegion: registered memory of a GPU, as far memory (memory/far_memory.h). The driver says what
// a pointer is (cuPointerGetAttributes); this is the only place that asks.
#pragma once

#include <optional>

#include "host/cuda/copier.h"

namespace verbena::host::cuda {

// PointerInfo: the attributes of an address, as the driver reports them.
struct PointerInfo {
  bool is_device = false;  // memory that the CPU cannot touch
  Context context = nullptr;
  u64 buffer_id = 0;  // another one after the memory was freed and allocated again
  DevicePointer range_start = 0;
  u64 range_size = 0;
};

// Returns nullopt, and the reason in `result`, if the driver cannot say. In the copier's thread.
[[nodiscard]] std::optional<PointerInfo> ask(const DriverAPI& driver, DevicePointer at,
                                             Result& result);

class CudaRegion final : public FarMemory {
 public:
  CudaRegion(Copier& copier, const PointerInfo& info, DevicePointer start,
             const std::optional<FarHandle>& handle)
      : copier_(copier), info_(info), start_(start), handle_(handle) {}

  [[nodiscard]] const FarHandle* handle() const override { return handle_ ? &*handle_ : nullptr; }
  [[nodiscard]] bool is_late() const override { return true; }
  [[nodiscard]] CopyState begin(CopyJob& job) override { return copier_.begin(job); }

  // Copier::make_staging(), in the region's context.
  [[nodiscard]] Expected<std::shared_ptr<u8[]>> make_staging(std::size_t bytes) const {
    return copier_.make_staging(info_.context, bytes);
  }
  [[nodiscard]] Context context() const { return info_.context; }
  [[nodiscard]] DevicePointer at(u64 offset) const { return start_ + offset; }
  // Returns false if the memory was freed, or freed and allocated again. In the copier's thread.
  [[nodiscard]] bool exists() const;

 private:
  Copier& copier_;
  const PointerInfo info_;
  const DevicePointer start_;
  const std::optional<FarHandle> handle_;
};

// FoundRegion is nullopt if `address` and the byte before `address + length` are no GPU memory, or
// if there is no CUDA driver. It holds an error if part of the range is GPU memory and cannot be
// registered.
using FoundRegion = std::optional<Expected<std::shared_ptr<CudaRegion>>>;
[[nodiscard]] FoundRegion find_region(const void* address, std::size_t length);

}  // namespace verbena::host::cuda
