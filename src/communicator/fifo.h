// Fifo: a queue that takes no memory while it is empty and was never used, unlike std::deque.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace verbena::coll {

template <typename T>
class Fifo {
 public:
  [[nodiscard]] bool empty() const { return head_ == items_.size(); }
  void push(T item) { items_.push_back(std::move(item)); }
  [[nodiscard]] T pop() {
    T item = std::move(items_[head_++]);
    if (empty()) clear();
    return item;
  }
  [[nodiscard]] T& back() { return items_.back(); }
  void clear() {
    items_.clear();
    head_ = 0;
  }
  [[nodiscard]] auto begin() const { return items_.begin() + static_cast<std::ptrdiff_t>(head_); }
  [[nodiscard]] auto end() const { return items_.end(); }

 private:
  std::vector<T> items_{};
  std::size_t head_ = 0;
};

}  // namespace verbena::coll
