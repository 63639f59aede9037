// LiveSet: the objects of one kind that an application has made from a context and not destroyed,
// so that closing the context leaves none behind, as the kernel does for a closed file.
// Thread-safe.
#pragma once

#include <mutex>
#include <string_view>
#include <unordered_set>

#include "abi/ibverbs/check/live_objects.h"

namespace verbena::abi {

template <typename T>
class LiveSet {
 public:
  explicit LiveSet(std::string_view kind) : kind_(kind) {}  // kind: for the checker

  void insert(T* object) {
    checks::created(object, kind_);
    const std::lock_guard lock(mutex_);
    objects_.insert(object);
  }
  void erase(T* object) {
    checks::destroyed(object);
    const std::lock_guard lock(mutex_);
    objects_.erase(object);
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return objects_.size();
  }
  // Calls visit(object) for each, until it returns true. The set is locked meanwhile.
  template <typename Visit>
  void visit_until(Visit visit) const {
    const std::lock_guard lock(mutex_);
    for (T* object : objects_)
      if (visit(*object)) return;
  }
  // Returns nullptr if none is left.
  [[nodiscard]] T* any() const {
    const std::lock_guard lock(mutex_);
    return objects_.empty() ? nullptr : *objects_.begin();
  }

 private:
  const std::string_view kind_;
  mutable std::mutex mutex_;
  std::unordered_set<T*> objects_;
};

}  // namespace verbena::abi
