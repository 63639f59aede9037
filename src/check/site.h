// Site: the place where a program made a call: return addresses, the innermost first, without
// Verbena's own. The driver takes them; this layer only keeps and compares them.
#pragma once

#include <array>
#include <span>

#include "base/types.h"

namespace verbena::check {

struct Site {
  static constexpr std::size_t kMaxFrames = 12;
  std::array<const void*, kMaxFrames> frames{};
  std::size_t count = 0;

  [[nodiscard]] std::span<const void* const> stack() const { return {frames.data(), count}; }
  // Distinguishes one place in a program from another; nullptr if no stack could be taken.
  [[nodiscard]] const void* call() const { return count == 0 ? nullptr : frames[0]; }
};

}  // namespace verbena::check
