// make<T>(): an object on the heap, or nullptr when there is no memory: a verb fails with ENOMEM.
#pragma once

#include <memory>
#include <new>
#include <utility>

namespace verbena::abi {

template <typename T, typename... Args>
[[nodiscard]] std::unique_ptr<T> make(Args&&... args) {
  return std::unique_ptr<T>(new (std::nothrow) T(std::forward<Args>(args)...));
}

}  // namespace verbena::abi
