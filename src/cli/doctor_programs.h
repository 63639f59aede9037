// `verbena doctor` names running programs that have loaded another libibverbs than Verbena's: they
// see none of its devices.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "cli/finding.h"

namespace verbena::cli {

// A libibverbs of a process that has not loaded Verbena's.
struct OtherLibrary {
  std::string path;
  bool under_verbena_run = false;  // an RPATH or an absolute name went past it
};
// `maps`: the process's /proc/PID/maps, proc(5). Returns nullopt if the process has no libibverbs,
// or Verbena's, which comes with the library that `verbena run` preloads.
[[nodiscard]] std::optional<OtherLibrary> other_libibverbs(std::string_view maps);

// Looks at all processes whose maps the caller may read.
[[nodiscard]] Finding examine_programs(const std::filesystem::path& proc);

}  // namespace verbena::cli
