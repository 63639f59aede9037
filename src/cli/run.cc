#include "cli/run.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/check.h"
#include "cli/library_folder.h"
#include "cli/program.h"
#include "cli/where.h"

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;

Expected<fs::path> find_loadable_library() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return failure(kExitCannot, "cannot read /proc/self/exe: is /proc mounted?");
  Expected<fs::path> folder =
      find_library_folder(self.parent_path(), VERBENA_LIBRARY_RELATIVE_PATHS);
  if (!folder) return folder;
  if (const Expected<void> loads = check_library_loads(*folder); !loads)
    return tl::unexpected(loads.error());
  return folder;
}

// Refuses a program that would run on something else than our device; warns where that may be so.
Expected<void> check_library_use(const fs::path& program) {
  switch (library_use(program)) {
    case LibraryUse::kLoads: return {};
    case LibraryUse::kPrivileged:
      return failure(kExitCannot,
                     fmt::format("{} gains privilege when executed, so the loader would ignore "
                                 "Verbena's library; run verbena inside it",
                                 program.string()));
    case LibraryUse::kOtherMachine:
      return failure(kExitCannot,
                     fmt::format("{} is built for another kind of machine than Verbena's library",
                                 program.string()));
    case LibraryUse::kStatic:
      fmt::print(stderr,
                 "verbena: warning: {} is statically linked and loads no libibverbs; only programs "
                 "that it starts can use the device\n",
                 program.string());
      return {};
  }
  CHECK_UNREACHABLE();
}

void set_environment(const fs::path& library_folder, const std::string& address) {
  const std::string path = library_path(library_folder, std::getenv("LD_LIBRARY_PATH"));
  setenv("LD_LIBRARY_PATH", path.c_str(), 1);
  if (!address.empty()) setenv(kAddressVariable, address.c_str(), 1);
}

Failure execute(const fs::path& program, const std::vector<std::string>& command) {
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  // With a slash in it nothing is searched; without, "prog" would be.
  const fs::path path = program.has_parent_path() ? program : "." / program;
  execvp(path.c_str(), argv.data());
  return {kExitNotExecutable,
          fmt::format("cannot execute {}: {}", program.string(), std::strerror(errno))};
}

}  // namespace

Failure run(const RunRequest& request) {
  const Expected<fs::path> library_folder = find_loadable_library();
  if (!library_folder) return library_folder.error();
  if (const auto addresses = addresses_of(request.address); !addresses) return addresses.error();

  const char* const search_path = std::getenv("PATH");
  const Expected<fs::path> program = find_program(
      request.command[0], search_path != nullptr ? search_path : "/usr/local/bin:/usr/bin:/bin");
  if (!program) return program.error();
  if (const Expected<void> use = check_library_use(*program); !use) return use.error();

  set_environment(*library_folder, request.address);
  return execute(*program, request.command);
}

}  // namespace verbena::cli
