// Next: the function of that name that a program would call without this library: the C library's,
// or another preloaded library's.
#pragma once

#include <dlfcn.h>

#include <cerrno>
#include <type_traits>

namespace verbena::abi::paths {

// Static, and found when the library is loaded: a search takes the loader's lock, which may be held
// for ever in the child of a fork().
template <typename Function>
class Next {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}

  void find() {
    if (function_ == nullptr) function_ = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name_));
  }

  // As if failed, with ENOSYS, where the C library has no such function.
  template <typename... Arguments>
  auto operator()(Arguments... arguments) {
    find();
    if (function_ != nullptr) return function_(arguments...);
    errno = ENOSYS;
    using Result = decltype(function_(arguments...));
    if constexpr (std::is_pointer_v<Result>)
      return Result(nullptr);
    else
      return Result(-1);
  }

 private:
  const char* name_;
  Function* function_ = nullptr;
};

}  // namespace verbena::abi::paths
