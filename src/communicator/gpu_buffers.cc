#include "communicator/gpu_buffers.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>

#include "host/os/loaded_library.h"

namespace verbena::coll {
namespace {

constexpr int kContextAttribute = 1, kMemoryTypeAttribute = 2, kManagedAttribute = 8,
              kOrdinalAttribute = 9;   // CUpointer_attribute
constexpr unsigned kDeviceMemory = 2;  // CU_MEMORYTYPE_DEVICE

}  // namespace

// As NVIDIA's "CUDA Driver API" reference has them.
struct GPUBuffers::Driver {
  int (*attributes)(unsigned, const int*, void**, u64);
  int (*primary_context)(void**, int);
  int (*push)(void*);
  int (*pop)(void**);
  int (*to_host)(void*, u64, std::size_t, void* stream);
  int (*to_device)(u64, const void*, std::size_t, void* stream);
  int (*synchronize)(void* stream);

  // Returns the context to use; nullptr: not GPU memory, or memory that the CPU can touch.
  void* context_of(u64 address) const {
    void* context = nullptr;
    unsigned type = 0;
    unsigned char is_managed = 0;
    int ordinal = -1;
    const std::array<int, 4> names = {kContextAttribute, kMemoryTypeAttribute, kManagedAttribute,
                                      kOrdinalAttribute};
    std::array<void*, 4> values = {&context, &type, &is_managed, &ordinal};
    if (attributes(names.size(), names.data(), values.data(), address) != 0 ||
        type != kDeviceMemory || is_managed != 0)
      return nullptr;
    if (context == nullptr && primary_context(&context, ordinal) != 0) return nullptr;
    return context;
  }
};

const GPUBuffers::Driver* GPUBuffers::driver() {
  static std::mutex mutex;
  static host::LoadedLibrary loaded("libcuda.so.1");
  static std::optional<Driver> found;
  const std::lock_guard lock(mutex);
  if (found) return &*found;
  void* const library = loaded.find();
  if (library == nullptr) return nullptr;
  Driver driver{};
  const auto look_up = [library](auto*& to, const char* name) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(::dlsym(library, name));
    return to != nullptr;
  };
  if (look_up(driver.attributes, "cuPointerGetAttributes") &&
      look_up(driver.primary_context, "cuDevicePrimaryCtxRetain") &&
      look_up(driver.push, "cuCtxPushCurrent_v2") && look_up(driver.pop, "cuCtxPopCurrent_v2") &&
      look_up(driver.to_host, "cuMemcpyDtoHAsync_v2") &&
      look_up(driver.to_device, "cuMemcpyHtoDAsync_v2") &&
      look_up(driver.synchronize, "cuStreamSynchronize"))
    found = driver;
  return found ? &*found : nullptr;
}

Expected<std::unique_ptr<GPUBuffers>> GPUBuffers::stage(void* stream,
                                                        std::initializer_list<Range> given) {
  if (driver() == nullptr) return nullptr;
  std::vector<Range> ranges(given);
  std::ranges::sort(ranges, {}, &Range::address);
  auto staged = std::make_unique<GPUBuffers>(stream);
  for (const Range& range : ranges)
    if (range.bytes != 0)
      if (Error error = staged->add(range); error.status != VERBENA_COLL_OK)
        return tl::unexpected(std::move(error));
  if (staged->buffers_.empty()) return nullptr;
  for (const Buffer& buffer : staged->buffers_)
    if (Error error = staged->copy_in(buffer); error.status != VERBENA_COLL_OK)
      return tl::unexpected(std::move(error));
  return staged;
}

// Ranges come in the order of their addresses.
Error GPUBuffers::add(const Range& range) {
  const u64 first = reinterpret_cast<u64>(range.address), end = first + range.bytes;
  void* const context = driver()->context_of(first);
  if ((context == nullptr) != (driver()->context_of(end - 1) == nullptr))
    return {VERBENA_COLL_INVALID, "a buffer lies partly in GPU memory"};
  if (context == nullptr) return {};
  if (!buffers_.empty() && first < buffers_.back().address + buffers_.back().host.size()) {
    Buffer& before = buffers_.back();
    before.host.resize(std::max<u64>(before.host.size(), end - before.address));
    before.ranges.push_back(range);
    return {};
  }
  buffers_.push_back({first, std::vector<u8>(range.bytes), context, {range}});
  return {};
}

// All of it, because an operation may leave parts of what it writes as they are.
Error GPUBuffers::copy_in(const Buffer& buffer) {
  const Driver& cuda = *driver();
  if (cuda.push(buffer.context) != 0) return {VERBENA_COLL_SYSTEM, "the GPU's context has ended"};
  int result = cuda.to_host(const_cast<u8*>(buffer.host.data()), buffer.address, buffer.host.size(),
                            stream_);
  if (result == 0) result = cuda.synchronize(stream_);
  void* popped = nullptr;
  cuda.pop(&popped);
  if (result == 0) return {};
  return {VERBENA_COLL_SYSTEM, "GPU memory cannot be copied: CUDA error " + std::to_string(result)};
}

void* GPUBuffers::place_of(const void* address) const {
  const u64 at = reinterpret_cast<u64>(address);
  for (const Buffer& buffer : buffers_)
    if (at - buffer.address < buffer.host.size())
      return const_cast<u8*>(buffer.host.data()) + (at - buffer.address);
  return const_cast<void*>(address);
}

Error GPUBuffers::copy_out() {
  const Driver& cuda = *driver();
  for (const Buffer& buffer : buffers_) {
    if (cuda.push(buffer.context) != 0) return {VERBENA_COLL_SYSTEM, "the GPU's context has ended"};
    int result = 0;
    for (const Range& range : buffer.ranges)
      if (!range.is_source && result == 0)
        result = cuda.to_device(reinterpret_cast<u64>(range.address), place_of(range.address),
                                range.bytes, stream_);
    if (result == 0) result = cuda.synchronize(stream_);
    void* popped = nullptr;
    cuda.pop(&popped);
    if (result != 0)
      return {VERBENA_COLL_SYSTEM,
              "GPU memory cannot be written: CUDA error " + std::to_string(result)};
  }
  buffers_.clear();  // once
  return {};
}

}  // namespace verbena::coll
