// The stand-in for libcuda.so.1 (tests/standin/libcuda.cc), loaded as a program loads the driver.
#pragma once

#include <dlfcn.h>

#include <cstddef>

namespace verbena::test {

struct StandinCuda {
  using Pointer = unsigned long long;
  explicit StandinCuda(const char* path) : library(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (library == nullptr) return;
    load(ctx_create, "cuCtxCreate_v2");
    load(ctx_destroy, "cuCtxDestroy_v2");
    load(ctx_get_current, "cuCtxGetCurrent");
    load(ctx_set_current, "cuCtxSetCurrent");
    load(mem_alloc, "cuMemAlloc_v2");
    load(mem_free, "cuMemFree_v2");
    load(mem_alloc_managed, "cuMemAllocManaged");
    load(mem_host_alloc, "cuMemHostAlloc");
    load(mem_free_host, "cuMemFreeHost");
    load(mem_alloc_async, "cuMemAllocAsync");
    load(address_reserve, "cuMemAddressReserve");
    load(address_free, "cuMemAddressFree");
    load(mem_create, "cuMemCreate");
    load(mem_release, "cuMemRelease");
    load(mem_map, "cuMemMap");
    load(mem_unmap, "cuMemUnmap");
    load(range_handle, "cuMemGetHandleForAddressRange");
    load(to_host, "cuMemcpyDtoH_v2");
    load(to_device, "cuMemcpyHtoD_v2");
    load(stream_create, "cuStreamCreate");
    load(to_device_async, "cuMemcpyHtoDAsync_v2");
    load(control, "standin_control");
    load(count, "standin_count");
  }

  void* library;
  int (*ctx_create)(void**, unsigned, int) = nullptr;
  int (*ctx_destroy)(void*) = nullptr;
  int (*ctx_get_current)(void**) = nullptr;
  int (*ctx_set_current)(void*) = nullptr;
  int (*mem_alloc)(Pointer*, std::size_t) = nullptr;
  int (*mem_free)(Pointer) = nullptr;
  int (*mem_alloc_managed)(Pointer*, std::size_t, unsigned) = nullptr;
  int (*mem_host_alloc)(void**, std::size_t, unsigned) = nullptr;
  int (*mem_free_host)(void*) = nullptr;
  int (*mem_alloc_async)(Pointer*, std::size_t, void*) = nullptr;
  int (*address_reserve)(Pointer*, std::size_t, std::size_t, Pointer, unsigned long long) = nullptr;
  int (*address_free)(Pointer, std::size_t) = nullptr;
  int (*mem_create)(unsigned long long*, std::size_t, const void*, unsigned long long) = nullptr;
  int (*mem_release)(unsigned long long) = nullptr;
  int (*mem_map)(Pointer, std::size_t, std::size_t, unsigned long long,
                 unsigned long long) = nullptr;
  int (*mem_unmap)(Pointer, std::size_t) = nullptr;
  int (*range_handle)(void*, Pointer, std::size_t, int, unsigned long long) = nullptr;
  int (*to_host)(void*, Pointer, std::size_t) = nullptr;
  int (*to_device)(Pointer, const void*, std::size_t) = nullptr;
  int (*stream_create)(void**, unsigned) = nullptr;
  int (*to_device_async)(Pointer, const void*, std::size_t, void*) = nullptr;
  void (*control)(const char*, long) = nullptr;
  unsigned long long (*count)(const char*) = nullptr;

 private:
  template <typename Function>
  void load(Function*& to, const char* name) {
    to = reinterpret_cast<Function*>(::dlsym(library, name));
  }
};

// The one that this process has loaded.
inline const StandinCuda& cuda() {
  static const StandinCuda one(VERBENA_STANDIN_CUDA);
  return one;
}

}  // namespace verbena::test
