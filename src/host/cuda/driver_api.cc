#include "host/cuda/driver_api.h"

#include <dlfcn.h>

#include <mutex>
#include <optional>

#include "host/os/loaded_library.h"

namespace verbena::host::cuda {
namespace {

template <typename Function>
bool look_up(void* library, const char* name, Function*& to) {
  to = reinterpret_cast<Function*>(::dlsym(library, name));
  return to != nullptr;
}

// The names carry the version whose parameters the table has.
std::optional<DriverAPI> table_of(void* library) {
  DriverAPI api{};
  const bool is_complete =
      look_up(library, "cuPointerGetAttributes", api.pointer_get_attributes) &&
      look_up(library, "cuDevicePrimaryCtxRetain", api.primary_context_retain) &&
      look_up(library, "cuCtxPushCurrent_v2", api.context_push) &&
      look_up(library, "cuCtxPopCurrent_v2", api.context_pop) &&
      look_up(library, "cuStreamCreate", api.stream_create) &&
      look_up(library, "cuStreamSynchronize", api.stream_synchronize) &&
      look_up(library, "cuEventCreate", api.event_create) &&
      look_up(library, "cuEventRecord", api.event_record) &&
      look_up(library, "cuEventQuery", api.event_query) &&
      look_up(library, "cuMemcpyDtoHAsync_v2", api.copy_to_host) &&
      look_up(library, "cuMemcpyHtoDAsync_v2", api.copy_to_device) &&
      look_up(library, "cuMemHostRegister_v2", api.host_register) &&
      look_up(library, "cuMemHostUnregister", api.host_unregister);
  static_cast<void>(look_up(library, "cuPointerSetAttribute", api.pointer_set_attribute));
  static_cast<void>(look_up(library, "cuGetErrorName", api.error_name));
  static_cast<void>(look_up(library, "cuMemcpyDtoDAsync_v2", api.copy_on_device));
  if (!look_up(library, "cuIpcGetMemHandle", api.ipc_handle) ||
      !look_up(library, "cuIpcOpenMemHandle_v2", api.ipc_open) ||
      !look_up(library, "cuIpcCloseMemHandle", api.ipc_close)) {
    api.ipc_handle = nullptr;
    api.ipc_open = nullptr;
  }
  return is_complete ? std::optional(api) : std::nullopt;
}

}  // namespace

const DriverAPI* DriverAPI::find() {
  static std::mutex mutex;
  static LoadedLibrary library("libcuda.so.1");
  static std::optional<DriverAPI> found;
  const std::lock_guard lock(mutex);
  if (found) return &*found;
  if (void* const handle = library.find(); handle != nullptr) found = table_of(handle);
  return found ? &*found : nullptr;
}

std::string DriverAPI::name_of(Result result) const {
  const char* name = nullptr;
  if (error_name != nullptr && error_name(result, &name) == kSuccess && name != nullptr)
    return name;
  return "CUDA error " + std::to_string(result);
}

}  // namespace verbena::host::cuda
