#include "cli/file_tree.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "base/check.h"

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;

// Out of the way of scripts that choose numbers of their own, and below what a process may have.
constexpr int kHighDescriptor = 900;

tl::unexpected<Failure> cannot(std::string_view what, int error) {
  return failure(kExitCannot, fmt::format("cannot {}: {}", what, std::strerror(error)));
}

std::error_code write_text(const fs::path& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  if (!file) return {errno, std::generic_category()};
  std::error_code error;
  fs::permissions(path, fs::perms(0444), error);
  return error;
}

std::error_code write_file(const fs::path& path, const DeviceFile& file) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return error;
  switch (file.kind) {
    case DeviceFileKind::kText: return write_text(path, file.content);
    case DeviceFileKind::kLink: fs::create_symlink(file.content, path, error); return error;
    case DeviceFileKind::kFolder: fs::create_directories(path, error); return error;
  }
  CHECK_UNREACHABLE();
}

void remove_tree(const fs::path& folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

// Waits until nobody holds the other end, then removes the folder. Nothing that it inherited may
// keep others waiting: terminals, pipes, working folders.
[[noreturn]] void keep(const fs::path& folder, int end_of_use) {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE}) ::signal(number, SIG_IGN);
  ::prctl(PR_SET_NAME, "verbena-files");
  (void)!::chdir("/");
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, standard);
  ::dup2(end_of_use, STDERR_FILENO + 1);
  ::close_range(STDERR_FILENO + 2, ~0u, 0);
  char byte;
  while (::read(STDERR_FILENO + 1, &byte, 1) < 0 && errno == EINTR) {
  }
  remove_tree(folder);
  ::_exit(0);
}

// Starts the keeper as a process that is no child of the program, so that the program never waits
// for it.
Expected<void> start_keeper(const fs::path& folder, int end_of_use, int use) {
  const pid_t child = ::fork();
  if (child < 0) return cannot("start a process", errno);
  if (child == 0) {
    ::close(use);
    ::setsid();
    if (::fork() == 0) keep(folder, end_of_use);
    ::_exit(0);
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {};
}

}  // namespace

Expected<fs::path> make_tree_folder(const fs::path& parent) {
  std::string folder = (parent / "verbena-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr)
    return cannot("make a folder in " + parent.string(), errno);
  std::error_code error;
  fs::permissions(folder, fs::perms(0755), error);
  return folder;
}

Expected<void> write_file_tree(const fs::path& folder, const std::vector<DeviceFile>& files) {
  for (const DeviceFile& file : files)
    if (const auto error = write_file(folder / fs::path(file.path).relative_path(), file); error)
      return cannot("write into " + folder.string(), error.value());
  return {};
}

Expected<void> remove_when_unused(const fs::path& folder) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return cannot("make a pipe", errno);
  const auto [end_of_use, use] = pipe;
  Expected<void> started = start_keeper(folder, end_of_use, use);
  // The program keeps a copy of `use` open. The keeper removes the folder when that closes.
  if (started && ::fcntl(use, F_DUPFD, kHighDescriptor) < 0)
    ::fcntl(use, F_SETFD, 0);
  else
    ::close(use);
  ::close(end_of_use);
  return started;
}

}  // namespace verbena::cli
