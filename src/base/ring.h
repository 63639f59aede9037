// Ring<T>: a bounded FIFO, one allocation at construction, none after. Not thread-safe.
#pragma once

#include <bit>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/types.h"

namespace verbena {

template <typename T>
class Ring {
 public:
  // Holds at least `capacity` entries (rounded up to a power of two for indexing; full() still
  // reports the capacity asked for).
  explicit Ring(std::size_t capacity)
      : capacity_(capacity),
        mask_(std::bit_ceil(capacity == 0 ? 1 : capacity) - 1),
        slots_(new T[mask_ + 1]()) {}

  std::size_t capacity() const { return capacity_; }
  std::size_t size() const { return tail_ - head_; }
  bool empty() const { return head_ == tail_; }
  bool full() const { return size() == capacity_; }

  T& push(T value) {
    CHECK(!full());
    T& slot = slots_[tail_++ & mask_];
    slot = std::move(value);
    return slot;
  }
  T& front() {
    CHECK(!empty());
    return slots_[head_ & mask_];
  }
  const T& front() const {
    CHECK(!empty());
    return slots_[head_ & mask_];
  }
  // Returns the i-th entry from the front. Precondition: i < size().
  T& operator[](std::size_t i) {
    CHECK(i < size());
    return slots_[(head_ + i) & mask_];
  }
  const T& operator[](std::size_t i) const {
    CHECK(i < size());
    return slots_[(head_ + i) & mask_];
  }
  // An emptied ring begins anew at its first slot, so that a short queue stays in few cache lines.
  T pop() {
    CHECK(!empty());
    T& first = slots_[head_++ & mask_];
    if (head_ == tail_) head_ = tail_ = 0;
    return std::move(first);
  }
  void clear() { head_ = tail_; }

 private:
  std::size_t capacity_;
  std::size_t mask_;
  std::unique_ptr<T[]> slots_;
  std::size_t head_ = 0, tail_ = 0;  // both count up; the difference is the size
};

}  // namespace verbena
