// The CUDA driver as a program uses it, and buffers on both sides of a copy.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace verbena::gpu_paths {

using Pointer = unsigned long long;  // CUdeviceptr

[[noreturn]] void end_with(const std::string& why) {
  std::fprintf(stderr, "verbena bench gpu-paths: %s\n", why.c_str());
  std::_Exit(2);
}
inline void must(bool holds, const char* what) {
  if (!holds) end_with(std::string(what) + " has failed");
}

// The functions of the CUDA driver that a program uses.
struct Driver {
  explicit Driver(const char* path) : library(::dlopen(path, RTLD_NOW | RTLD_GLOBAL)) {
    if (library == nullptr) end_with("there is no CUDA driver here: " + std::string(::dlerror()));
    load(init, "cuInit");
    load(device_get, "cuDeviceGet");
    load(device_name, "cuDeviceGetName");
    load(primary_context, "cuDevicePrimaryCtxRetain");
    load(context_set, "cuCtxSetCurrent");
    load(allocate, "cuMemAlloc_v2");
    load(allocate_host, "cuMemHostAlloc");
    load(to_host, "cuMemcpyDtoH_v2");
    load(to_device, "cuMemcpyHtoD_v2");
  }
  // Makes the first device's context that of the calling thread.
  void use() const {
    int device = 0;
    void* context = nullptr;
    must(init(0) == 0, "cuInit");
    must(device_get(&device, 0) == 0, "cuDeviceGet");
    must(primary_context(&context, device) == 0, "cuDevicePrimaryCtxRetain");
    must(context_set(context) == 0, "cuCtxSetCurrent");
  }

  void* library;
  int (*init)(unsigned) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*primary_context)(void**, int) = nullptr;
  int (*context_set)(void*) = nullptr;
  int (*allocate)(Pointer*, std::size_t) = nullptr;
  int (*allocate_host)(void**, std::size_t, unsigned) = nullptr;
  int (*to_host)(void*, Pointer, std::size_t) = nullptr;
  int (*to_device)(Pointer, const void*, std::size_t) = nullptr;

 private:
  template <typename Function>
  void load(Function*& to, const char* name) {
    to = reinterpret_cast<Function*>(::dlsym(library, name));
    if (to == nullptr) end_with(std::string("the CUDA driver lacks ") + name);
  }
};

struct Buffers {
  Buffers(const Driver& driver, std::size_t bytes) {
    must(driver.allocate(&from, bytes) == 0 && driver.allocate(&to, bytes) == 0, "cuMemAlloc");
    must(driver.allocate_host(&host_from, bytes, 0) == 0 &&
             driver.allocate_host(&host_to, bytes, 0) == 0,
         "cuMemHostAlloc");
  }
  Pointer from = 0, to = 0;
  void *host_from = nullptr, *host_to = nullptr;
};

// The bytes of a way, which tells them from those of others by `seed`.
inline std::vector<char> content(std::size_t bytes, char seed) {
  std::vector<char> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    all[i] = static_cast<char>(seed + static_cast<char>(i * 7));
  return all;
}

// The content in the source, none in the destination.
inline void fill(const Driver& driver, const Buffers& buffers, std::size_t bytes, char seed) {
  const std::vector<char> none(bytes, 0), all = content(bytes, seed);
  must(driver.to_device(buffers.to, none.data(), bytes) == 0 &&
           driver.to_device(buffers.from, all.data(), bytes) == 0,
       "cuMemcpyHtoD");
}
inline void compare(const Driver& driver, const Buffers& buffers, std::size_t bytes, char seed) {
  std::vector<char> got(bytes);
  must(driver.to_host(got.data(), buffers.to, bytes) == 0, "cuMemcpyDtoH");
  if (got != content(bytes, seed)) end_with("a message has arrived with wrong bytes");
}

}  // namespace verbena::gpu_paths
