// UseCount: how many objects were made from one and still refer to it; destroying it is EBUSY while
// there are any. Use: one of them. Thread-safe.
#pragma once

#include <atomic>
#include <utility>

namespace verbena::abi {

class UseCount {
 public:
  [[nodiscard]] bool in_use() const { return uses_ != 0; }

 private:
  friend class Use;
  std::atomic<int> uses_{0};
};

class Use {
 public:
  Use() = default;
  explicit Use(UseCount& of) : of_(&of) { ++of.uses_; }
  ~Use() { drop(); }
  Use(Use&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
  Use& operator=(Use&& other) noexcept {
    drop();
    of_ = std::exchange(other.of_, nullptr);
    return *this;
  }

 private:
  void drop() {
    if (of_ != nullptr) --of_->uses_;
  }

  UseCount* of_ = nullptr;
};

}  // namespace verbena::abi
