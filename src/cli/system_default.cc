#include "cli/system_default.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "base/check.h"
#include "cli/library_folder.h"

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHeader =
    "# Written by `verbena default on`; `verbena default off` removes it.";

Expected<void> check_is_private(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0)
    return cannot(fmt::format("cannot read {}: {}", folder.string(), std::strerror(errno)));
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return cannot(
        fmt::format("{} can be written to by other users, and all programs would load what "
                    "they put there; install Verbena, or chmod go-w the folder",
                    folder.string()));
  return {};
}

// The program has no search path to trust: root may run it.
Expected<void> run_ldconfig(const fs::path& root) {
  const pid_t child = ::fork();
  if (child < 0) return cannot(fmt::format("cannot start ldconfig: {}", std::strerror(errno)));
  if (child == 0) {
    if (root == "/")
      ::execl("/sbin/ldconfig", "ldconfig", static_cast<char*>(nullptr));
    else
      ::execl("/sbin/ldconfig", "ldconfig", "-r", root.c_str(), static_cast<char*>(nullptr));
    ::_exit(kExitNotFound);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return cannot("/sbin/ldconfig failed: the loader's cache is as it was; run ldconfig as root");
}

Expected<void> turn_on(const SystemDefault& system) {
  const Expected<fs::path> library = program_beside_library(kLibraryName);
  if (!library) return tl::unexpected(library.error());
  return system.set_folder(library->parent_path());
}

std::string status_text(const SystemDefault& system) {
  const std::optional<fs::path> folder = system.folder();
  if (!folder) return "off: programs use the system's libibverbs, but under `verbena run`\n";
  return fmt::format("on: programs use {}\n", (*folder / kLibraryName).string());
}

Expected<void> change(const DefaultRequest& request, const SystemDefault& system) {
  switch (request.action) {
    case DefaultRequest::Action::kStatus: return {};
    case DefaultRequest::Action::kOn:
      if (const auto done = turn_on(system); !done) return done;
      return run_ldconfig(request.root);
    case DefaultRequest::Action::kOff:
      if (const auto done = system.clear(); !done) return done;
      return run_ldconfig(request.root);
  }
  CHECK_UNREACHABLE();
}

}  // namespace

fs::path SystemDefault::file() const { return root_ / "etc/ld.so.conf.d/00-verbena.conf"; }

std::optional<fs::path> SystemDefault::folder() const {
  std::ifstream in(file());
  for (std::string line; std::getline(in, line);)
    if (line.starts_with('/')) return fs::path(line);
  return std::nullopt;
}

Expected<void> SystemDefault::set_folder(const fs::path& folder) const {
  if (const auto is_private = check_is_private(folder); !is_private) return is_private;
  std::ofstream out(file(), std::ios::trunc);
  out << kHeader << '\n' << folder.string() << '\n';
  out.flush();
  if (out) return {};
  return cannot(fmt::format("cannot write {}: {}", file().string(), std::strerror(errno)));
}

Expected<void> SystemDefault::clear() const {
  std::error_code error;
  fs::remove(file(), error);  // no error when there is none
  if (!error) return {};
  return cannot(fmt::format("cannot remove {}: {}", file().string(), error.message()));
}

Expected<std::string> system_default(const DefaultRequest& request) {
  const SystemDefault system(request.root);
  if (const auto done = change(request, system); !done) return tl::unexpected(done.error());
  return status_text(system);
}

}  // namespace verbena::cli
