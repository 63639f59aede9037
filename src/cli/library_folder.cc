#include "cli/library_folder.h"

#include <dlfcn.h>

#include <algorithm>

#include <fmt/format.h>

namespace verbena::cli {

namespace fs = std::filesystem;

Expected<fs::path> find_library_folder(const fs::path& executable_folder,
                                       std::string_view relative_paths) {
  std::string looked_in;
  while (!relative_paths.empty()) {
    const std::string_view relative = relative_paths.substr(0, relative_paths.find(':'));
    relative_paths.remove_prefix(std::min(relative.size() + 1, relative_paths.size()));
    const fs::path folder = (executable_folder / relative).lexically_normal();
    std::error_code ignored;
    if (fs::exists(folder / kLibraryName, ignored)) return folder;
    looked_in += (looked_in.empty() ? "" : ", ") + folder.string();
  }
  return failure(kExitCannot,
                 fmt::format("{} is missing: looked in {}; build or install Verbena as a whole",
                             kLibraryName, looked_in));
}

Expected<fs::path> program_beside_library(const char* name) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return failure(kExitCannot, "cannot read /proc/self/exe: is /proc mounted?");
  const auto folder = find_library_folder(self.parent_path(), VERBENA_LIBRARY_RELATIVE_PATHS);
  if (!folder) return folder;
  return *folder / name;
}

Expected<void> check_library_loads(const fs::path& library_folder) {
  if (dlopen((library_folder / kLibraryName).c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return {};
  const char* const reason = dlerror();
  return failure(kExitCannot,
                 fmt::format("{} cannot be loaded: {}; install what it needs, or Verbena again",
                             kLibraryName, reason != nullptr ? reason : "no reason given"));
}

std::string library_path(const fs::path& folder, const char* before) {
  if (before == nullptr || *before == '\0') return folder.string();
  return folder.string() + ":" + before;
}

std::string preloaded(const fs::path& folder, const char* before) {
  const std::string path = (folder / kPreloadedName).string();
  // A name with a separator in it cannot be given; without its folder it is found by
  // LD_LIBRARY_PATH.
  const bool can_be_given = path.find_first_of(" :") == std::string::npos;
  const std::string name = can_be_given ? path : kPreloadedName;
  if (before == nullptr || *before == '\0') return name;
  return before + (":" + name);
}

}  // namespace verbena::cli
