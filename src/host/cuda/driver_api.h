// DriverAPI: the functions of the CUDA driver that we call, as one table. Types and values are
// those of NVIDIA's public "CUDA Driver API" reference; none of its headers is needed.
//
// libcuda.so.1 is never linked and never loaded by us: find() takes the library that the program
// has loaded. Without one there is no CUDA memory either.
#pragma once

#include <cstddef>
#include <string>

#include "base/types.h"

namespace verbena::host::cuda {

using Result = int;  // CUresult
inline constexpr Result kSuccess = 0, kInvalidValue = 1, kNotInitialized = 3, kNotReady = 600;

using DevicePointer = unsigned long long;  // CUdeviceptr
using Context = void*;
using Stream = void*;
using Event = void*;

enum class PointerAttribute : int {  // CUpointer_attribute
  kContext = 1,
  kMemoryType = 2,
  kSyncMemops = 6,
  kBufferId = 7,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kRangeStart = 11,
  kRangeSize = 12,
};
inline constexpr unsigned kTypeDevice = 2;  // CU_MEMORYTYPE_DEVICE
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kHostRegisterPortable = 1;
inline constexpr unsigned kLazyPeerAccess = 1;  // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS

struct IPCHandle {  // CUipcMemHandle
  char reserved[64];
};

struct DriverAPI {
  Result (*pointer_get_attributes)(unsigned, PointerAttribute*, void**, DevicePointer);
  Result (*primary_context_retain)(Context*, int device);
  Result (*context_push)(Context);
  Result (*context_pop)(Context*);
  Result (*stream_create)(Stream*, unsigned flags);
  Result (*stream_synchronize)(Stream);
  Result (*event_create)(Event*, unsigned flags);
  Result (*event_record)(Event, Stream);
  Result (*event_query)(Event);
  Result (*copy_to_host)(void*, DevicePointer, std::size_t, Stream);
  Result (*copy_to_device)(DevicePointer, const void*, std::size_t, Stream);
  Result (*host_register)(void*, std::size_t, unsigned flags);
  Result (*host_unregister)(void*);
  // nullptr if the driver has none:
  Result (*pointer_set_attribute)(const void*, PointerAttribute, DevicePointer);
  Result (*error_name)(Result, const char**);
  Result (*copy_on_device)(DevicePointer to, DevicePointer from, std::size_t, Stream);
  Result (*ipc_handle)(IPCHandle*, DevicePointer);
  Result (*ipc_open)(DevicePointer*, IPCHandle, unsigned flags);
  Result (*ipc_close)(DevicePointer);

  // Returns nullptr if the program has loaded no CUDA driver, or one that lacks another function.
  // Asks again after a failure, because a program may load the driver later.
  [[nodiscard]] static const DriverAPI* find();
  // "CUDA_ERROR_INVALID_VALUE", or the number if the driver has no name for it.
  [[nodiscard]] std::string name_of(Result result) const;
};

}  // namespace verbena::host::cuda
