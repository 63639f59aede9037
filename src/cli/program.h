// The program that `verbena run` executes: found as execvp(3) finds it, and looked at, since some
// programs would not load our library and thus would silently run on something else.
#pragma once

#include <filesystem>
#include <string>

#include "cli/failure.h"

namespace verbena::cli {

// `search_path`: what PATH says. Exit status 127: not found; 126: found, and not to be executed.
[[nodiscard]] Expected<std::filesystem::path> find_program(const std::string& name,
                                                           const std::string& search_path);

enum class LibraryUse {
  kLoads,         // it will load our library, if it loads one; or not known: a script, say
  kPrivileged,    // set-user-ID, set-group-ID or capabilities: the loader ignores our path
  kStatic,        // loads no libraries; programs that it starts may
  kOtherMachine,  // built for another kind of processor than our library, or for 32 bits
};

[[nodiscard]] LibraryUse library_use(const std::filesystem::path& program);

}  // namespace verbena::cli
