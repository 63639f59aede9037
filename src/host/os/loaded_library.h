// LoadedLibrary: a shared library that the program may load at any time, or never. A search by
// dlopen(3) with RTLD_NOLOAD goes through the library path, which takes 10 us; so it is repeated
// only when the process has loaded something since the last one. Not thread-safe.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <optional>
#include <utility>

#include "base/types.h"

namespace verbena::host {

class LoadedLibrary {
 public:
  explicit LoadedLibrary(const char* name) : name_(name) {}

  // Returns its handle, which keeps it loaded, or nullptr while it is not loaded.
  [[nodiscard]] void* find() {
    if (handle_ == nullptr && is_search_due()) handle_ = ::dlopen(name_, RTLD_NOW | RTLD_NOLOAD);
    return handle_;
  }

 private:
  [[nodiscard]] bool is_search_due() {
    const u64 loaded = libraries_loaded();
    return std::exchange(searched_at_, loaded) != loaded;
  }
  // Returns how many libraries the process has loaded so far: dl_iterate_phdr(3), dlpi_adds. The
  // first entry has it.
  [[nodiscard]] static u64 libraries_loaded() {
    u64 loaded = 0;
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* to) {
          *static_cast<u64*>(to) = info->dlpi_adds;
          return 1;
        },
        &loaded);
    return loaded;
  }

  const char* name_;
  void* handle_ = nullptr;
  std::optional<u64> searched_at_;
};

}  // namespace verbena::host
