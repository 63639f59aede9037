#include "host/cuda/region.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace verbena::host::cuda {

// The driver answers zeros for an address that it does not know.
std::optional<PointerInfo> ask(const DriverAPI& driver, DevicePointer at, Result& result) {
  PointerInfo info;
  unsigned type = 0;
  int ordinal = -1;
  unsigned char is_managed = 0;
  unsigned long long buffer_id = 0;
  DevicePointer start = 0;
  std::size_t size = 0;
  std::array attributes = {PointerAttribute::kContext,       PointerAttribute::kMemoryType,
                           PointerAttribute::kBufferId,      PointerAttribute::kIsManaged,
                           PointerAttribute::kDeviceOrdinal, PointerAttribute::kRangeStart,
                           PointerAttribute::kRangeSize};
  std::array<void*, attributes.size()> values = {&info.context, &type,  &buffer_id, &is_managed,
                                                 &ordinal,      &start, &size};
  result = driver.pointer_get_attributes(static_cast<unsigned>(attributes.size()),
                                         attributes.data(), values.data(), at);
  if (result != kSuccess) return std::nullopt;
  info.is_device = type == kTypeDevice && is_managed == 0;
  info.buffer_id = buffer_id;
  info.range_start = start;
  info.range_size = size;
  // Memory of the virtual memory API and of pools belongs to no context.
  if (info.is_device && info.context == nullptr)
    result = driver.primary_context_retain(&info.context, ordinal);
  return result == kSuccess ? std::optional(info) : std::nullopt;
}

namespace {

std::string hex(u64 value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

constexpr const char* kNoFork =
    "GPU memory of the parent process: CUDA does not work across fork(2), so a forked child loads "
    "the driver itself, before its parent does";

Error why_unknown(const DriverAPI& driver, DevicePointer at, Result result) {
  if (result == kNotInitialized) return {EFAULT, kNoFork};
  return {EIO, "the CUDA driver cannot say what " + hex(at) + " is: " + driver.name_of(result)};
}

// Returns what peers of this host need for copies on the GPU. The driver gives other processes no
// memory of pools and of the virtual memory API: then only this process itself can copy so.
std::optional<FarHandle> handle_of(const DriverAPI& driver, const PointerInfo& info,
                                   DevicePointer first) {
  if (driver.copy_on_device == nullptr) return std::nullopt;
  FarHandle handle{
      .offset = first - info.range_start, .address = first, .identity = info.buffer_id};
  IPCHandle opaque;
  if (driver.ipc_handle != nullptr && driver.ipc_handle(&opaque, first) == kSuccess)
    std::memcpy(handle.opaque.data(), &opaque, sizeof opaque);
  return handle;
}

FoundRegion find_in_thread(Copier& copier, DevicePointer first, std::size_t length) {
  const DriverAPI& driver = copier.driver();
  Result result = kSuccess;
  const std::optional<PointerInfo> begin = ask(driver, first, result);
  if (!begin) return tl::unexpected(why_unknown(driver, first, result));
  const std::optional<PointerInfo> end = ask(driver, first + (length - 1), result);
  if (!begin->is_device) {
    if (!end || !end->is_device) return std::nullopt;
    return failure(EFAULT,
                   "the range begins outside of GPU memory and ends in it; register the "
                   "two parts by themselves");
  }
  const u64 left = begin->range_start + begin->range_size - first;
  if (length > left)
    return failure(EFAULT, "the range crosses the end of its allocation on the GPU, which is " +
                               std::to_string(left) +
                               " bytes on; register each allocation by "
                               "itself");
  // Copies are impossible after a reset of the device.
  if (const Result gone = driver.context_push(begin->context); gone != kSuccess)
    return failure(EIO, "the CUDA context of the memory has ended: " + driver.name_of(gone));
  const std::optional<FarHandle> handle = handle_of(driver, *begin, first);
  Context popped;
  static_cast<void>(driver.context_pop(&popped));
  // Copies of the program that are synchronous by contract are then so for peers, too.
  const unsigned on = 1;
  if (driver.pointer_set_attribute != nullptr)
    static_cast<void>(driver.pointer_set_attribute(&on, PointerAttribute::kSyncMemops, first));
  return std::make_shared<CudaRegion>(copier, *begin, first, handle);
}

}  // namespace

bool CudaRegion::exists() const {
  Result result = kSuccess;
  const std::optional<PointerInfo> now = ask(copier_.driver(), start_, result);
  return now && now->is_device && now->buffer_id == info_.buffer_id;
}

FoundRegion find_region(const void* address, std::size_t length) {
  if (address == nullptr || length == 0) return std::nullopt;
  Copier* const copier = Copier::of_process();
  if (copier == nullptr) {
    if (Copier::is_of_parent()) return failure(EFAULT, kNoFork);
    return std::nullopt;
  }
  FoundRegion found;
  const auto first = reinterpret_cast<DevicePointer>(address);
  if (!copier->run([&] { found = find_in_thread(*copier, first, length); })) return std::nullopt;
  return found;
}

}  // namespace verbena::host::cuda
