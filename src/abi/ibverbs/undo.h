// Undo: takes back the first part of a call when the rest of it throws or returns early. keep()
// says that the call has succeeded.
#pragma once

#include <utility>

namespace verbena::abi {

template <typename Action>
class Undo {
 public:
  explicit Undo(Action action) : action_(std::move(action)) {}
  ~Undo() {
    if (armed_) action_();
  }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

  void keep() { armed_ = false; }

 private:
  Action action_;
  bool armed_ = true;
};

}  // namespace verbena::abi
