// GPU memory at the border: how registrations find it, and what a device needs before its first
// copy. host/cuda/region.h knows the driver.
#pragma once

#include "abi/ibverbs/context_object.h"
#include "host/cuda/region.h"

namespace verbena::abi {

// Returns whether the CPU cannot reach all of the range, so that the driver is to be asked.
[[nodiscard]] bool is_perhaps_gpu_memory(const void* address, std::size_t length);
// Pins the slots for the copies of a device, at its first region of GPU memory. Returns 0 or errno;
// the reason is explained.
[[nodiscard]] int prepare_staging(ContextObject& owner, const host::cuda::CudaRegion& region);
// Where the first byte lies in its word (memory/far_memory.h).
[[nodiscard]] inline u32 skew_of(const void* address) {
  return static_cast<u32>(reinterpret_cast<std::uintptr_t>(address) % 8);
}

}  // namespace verbena::abi
