// The settings in VERBENA_CHECK: words with commas between them. docs/check.md
#pragma once

#include <optional>
#include <string_view>

namespace verbena::check {

inline constexpr const char* kVariable = "VERBENA_CHECK";
inline constexpr const char* kExitCodeVariable = "VERBENA_CHECK_EXIT_CODE";

struct Settings {
  bool fatal = false;     // abort at the first finding
  bool leaks = false;     // each object left at exit, with the stack of its creation
  bool overlaps = false;  // memory that two operations in flight write to
};

// Parses "1" (or "on", or nothing), "fatal", "leaks", "overlaps", and lists of them. Returns
// nullopt for any other word.
[[nodiscard]] std::optional<Settings> parse_settings(std::string_view text);
// Parses 0 to 255, decimal.
[[nodiscard]] std::optional<int> parse_exit_code(std::string_view text);

}  // namespace verbena::check
