// The folder of our libibverbs.so.1, found from where our executable lies, so that a tree can be
// moved.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "cli/failure.h"

namespace verbena::cli {

inline constexpr const char* kLibraryName = "libibverbs.so.1";
inline constexpr const char* kPreloadedName = "libverbena-paths.so";  // src/abi/paths

// `relative_paths`: folders relative to `executable_folder`, ':' between them; the first that holds
// the library wins.
[[nodiscard]] Expected<std::filesystem::path> find_library_folder(
    const std::filesystem::path& executable_folder, std::string_view relative_paths);

// A program that lies beside that library, by its name.
[[nodiscard]] Expected<std::filesystem::path> program_beside_library(const char* name);

// Loads the library that lies there, as a program would.
[[nodiscard]] Expected<void> check_library_loads(const std::filesystem::path& library_folder);

// Returns `folder` followed by `before`, the old value of LD_LIBRARY_PATH. `before` is nullptr if
// the variable was not set.
[[nodiscard]] std::string library_path(const std::filesystem::path& folder, const char* before);

// Returns `before`, the old value of LD_PRELOAD, followed by the library in `folder`. `before` is
// nullptr if the variable was not set.
[[nodiscard]] std::string preloaded(const std::filesystem::path& folder, const char* before);

}  // namespace verbena::cli
