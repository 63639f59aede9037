// ObjectTable<T>: owns up to `limit` objects of one kind. A pointer to one stays good until its
// destroy(). Not on the data path: creating may allocate.
// T has `u32 table_slot() const` and takes the slot as its first constructor argument.
#pragma once

#include <bit>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/types.h"

namespace verbena {

template <typename T>
class ObjectTable {
 public:
  explicit ObjectTable(u32 limit) : limit_(limit) {}

  // Returns nullptr if the table is full.
  template <typename... Args>
  [[nodiscard]] T* create(Args&&... args) {
    if (size() == limit_) return nullptr;
    const u32 slot = free_slot();
    auto made = std::make_unique<T>(slot, std::forward<Args>(args)...);
    T* const object = made.get();
    place(slot, std::move(made));
    return object;
  }
  void destroy(T* object) {
    const u32 slot = object->table_slot();
    CHECK(slot < objects_.size() && objects_[slot].get() == object);
    objects_[slot].reset();
    free_slots_.push_back(slot);
  }
  [[nodiscard]] T* find(u32 slot) const {  // nullptr if there is none
    return slot < objects_.size() ? objects_[slot].get() : nullptr;
  }
  // Returns the object with the least slot that is not below `from`, or nullptr.
  [[nodiscard]] T* find_from(u32 from) const {
    for (std::size_t slot = from; slot < objects_.size(); ++slot)
      if (objects_[slot] != nullptr) return objects_[slot].get();
    return nullptr;
  }
  u32 size() const { return static_cast<u32>(objects_.size() - free_slots_.size()); }

 private:
  u32 free_slot() const {
    return free_slots_.empty() ? static_cast<u32>(objects_.size()) : free_slots_.back();
  }
  // Nothing changes if this throws, and destroy() never needs memory.
  void place(u32 slot, std::unique_ptr<T> object) {
    if (slot == objects_.size()) {
      free_slots_.reserve(std::bit_ceil(objects_.size() + 1));
      objects_.push_back(std::move(object));
    } else {
      objects_[slot] = std::move(object);
      free_slots_.pop_back();
    }
  }
  u32 limit_;
  std::vector<std::unique_ptr<T>> objects_;
  std::vector<u32> free_slots_;
};

}  // namespace verbena
