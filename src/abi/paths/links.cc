// readlink(2), realpath(3), getcwd(3). What they answer has the names that programs know.
#include <unistd.h>

#include <cstdlib>

#include "abi/paths/next.h"
#include "abi/paths/redirected.h"

namespace verbena::abi::paths {
namespace {

using ReadLink = ssize_t(const char*, char*, std::size_t);
using ReadLinkAt = ssize_t(int, const char*, char*, std::size_t);
using CheckedReadLink = ssize_t(const char*, char*, std::size_t, std::size_t);
using CheckedReadLinkAt = ssize_t(int, const char*, char*, std::size_t, std::size_t);
using RealPath = char*(const char*, char*);
using CheckedRealPath = char*(const char*, char*, std::size_t);
using Canonicalize = char*(const char*);
using WorkingFolder = char*(char*, std::size_t);
using CheckedWorkingFolder = char*(char*, std::size_t, std::size_t);
using AllocatedWorkingFolder = char*();

constinit Next<ReadLink> next_readlink{"readlink"};
constinit Next<ReadLinkAt> next_readlinkat{"readlinkat"};
constinit Next<CheckedReadLink> next_readlink_chk{"__readlink_chk"};
constinit Next<CheckedReadLinkAt> next_readlinkat_chk{"__readlinkat_chk"};
constinit Next<RealPath> next_realpath{"realpath"};
constinit Next<CheckedRealPath> next_realpath_chk{"__realpath_chk"};
constinit Next<Canonicalize> next_canonicalize{"canonicalize_file_name"};
constinit Next<WorkingFolder> next_getcwd{"getcwd"};
constinit Next<CheckedWorkingFolder> next_getcwd_chk{"__getcwd_chk"};
constinit Next<AllocatedWorkingFolder> next_get_current_dir_name{"get_current_dir_name"};

[[gnu::constructor]] void find_links_functions() {
  next_readlink.find();
  next_readlinkat.find();
  next_readlink_chk.find();
  next_readlinkat_chk.find();
  next_realpath.find();
  next_realpath_chk.find();
  next_canonicalize.find();
  next_getcwd.find();
  next_getcwd_chk.find();
  next_get_current_dir_name.find();
}

char* restored(char* path) {
  if (path != nullptr) restore(path);
  return path;
}

}  // namespace
}  // namespace verbena::abi::paths

using namespace verbena::abi::paths;

extern "C" {

ssize_t readlink(const char* path, char* out, std::size_t size) noexcept {
  return next_readlink(Redirected(path).path(), out, size);
}
ssize_t readlinkat(int folder, const char* path, char* out, std::size_t size) noexcept {
  return next_readlinkat(folder, Redirected(folder, path).path(), out, size);
}
ssize_t __readlink_chk(const char* path, char* out, std::size_t size, std::size_t room) {
  return next_readlink_chk(Redirected(path).path(), out, size, room);
}
ssize_t __readlinkat_chk(int folder, const char* path, char* out, std::size_t size,
                         std::size_t room) {
  return next_readlinkat_chk(folder, Redirected(folder, path).path(), out, size, room);
}

char* realpath(const char* path, char* out) noexcept {
  return restored(next_realpath(Redirected(path).path(), out));
}
char* __realpath_chk(const char* path, char* out, std::size_t room) {
  return restored(next_realpath_chk(Redirected(path).path(), out, room));
}
char* canonicalize_file_name(const char* path) noexcept {
  return restored(next_canonicalize(Redirected(path).path()));
}

char* getcwd(char* out, std::size_t size) noexcept { return restored(next_getcwd(out, size)); }
char* __getcwd_chk(char* out, std::size_t size, std::size_t room) {
  return restored(next_getcwd_chk(out, size, room));
}
char* get_current_dir_name() noexcept { return restored(next_get_current_dir_name()); }

}  // extern "C"
