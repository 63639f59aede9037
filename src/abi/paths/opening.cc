// open(2) and fopen(3) and their relatives. The names with _2 are what _FORTIFY_SOURCE calls.
#include <fcntl.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "abi/paths/counter_files.h"
#include "abi/paths/next.h"
#include "abi/paths/redirected.h"

namespace verbena::abi::paths {
namespace {

using Open = int(const char*, int, ...);
using OpenAt = int(int, const char*, int, ...);
using CheckedOpen = int(const char*, int);
using CheckedOpenAt = int(int, const char*, int);
using OpenStream = FILE*(const char*, const char*);
using ReopenStream = FILE*(const char*, const char*, FILE*);

constinit Next<Open> next_open{"open"}, next_open64{"open64"};
constinit Next<OpenAt> next_openat{"openat"}, next_openat64{"openat64"};
constinit Next<CheckedOpen> next_open_2{"__open_2"}, next_open64_2{"__open64_2"};
constinit Next<CheckedOpenAt> next_openat_2{"__openat_2"}, next_openat64_2{"__openat64_2"};
constinit Next<OpenStream> next_fopen{"fopen"}, next_fopen64{"fopen64"};
constinit Next<ReopenStream> next_freopen{"freopen"}, next_freopen64{"freopen64"};

[[gnu::constructor]] void find_opening_functions() {
  next_open.find();
  next_open64.find();
  next_openat.find();
  next_openat64.find();
  next_open_2.find();
  next_open64_2.find();
  next_openat_2.find();
  next_openat64_2.find();
  next_fopen.find();
  next_fopen64.find();
  next_freopen.find();
  next_freopen64.find();
}

// The argument that open() has only where it may create a file.
mode_t mode_of(int flags, std::va_list arguments) {
  const bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return creates ? va_arg(arguments, mode_t) : 0;
}

template <typename OpenIt>
int open_redirected(const Redirected& file, int flags, OpenIt&& open_it) {
  int counter = -1;
  if (file.is_redirected() && open_counter(file.path(), flags, counter)) return counter;
  return open_it(file.path());
}

// For reading, as a stream of what the counter is now.
template <typename OpenIt>
FILE* open_stream(const char* path, const char* mode, OpenIt&& open_it) {
  const Redirected file(path);
  int counter = -1;
  if (!file.is_redirected() || mode == nullptr || mode[0] != 'r' ||
      std::strchr(mode, '+') != nullptr || !open_counter(file.path(), O_RDONLY, counter))
    return open_it(file.path());
  return counter < 0 ? nullptr : ::fdopen(counter, mode);
}

}  // namespace
}  // namespace verbena::abi::paths

using namespace verbena::abi::paths;

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_redirected(Redirected(path), flags,
                         [=](const char* name) { return next_open(name, flags, mode); });
}
int open64(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_redirected(Redirected(path), flags,
                         [=](const char* name) { return next_open64(name, flags, mode); });
}
int openat(int folder, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_redirected(Redirected(folder, path), flags,
                         [=](const char* name) { return next_openat(folder, name, flags, mode); });
}
int openat64(int folder, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_redirected(Redirected(folder, path), flags, [=](const char* name) {
    return next_openat64(folder, name, flags, mode);
  });
}
int __open_2(const char* path, int flags) {
  return open_redirected(Redirected(path), flags,
                         [=](const char* name) { return next_open_2(name, flags); });
}
int __open64_2(const char* path, int flags) {
  return open_redirected(Redirected(path), flags,
                         [=](const char* name) { return next_open64_2(name, flags); });
}
int __openat_2(int folder, const char* path, int flags) {
  return open_redirected(Redirected(folder, path), flags,
                         [=](const char* name) { return next_openat_2(folder, name, flags); });
}
int __openat64_2(int folder, const char* path, int flags) {
  return open_redirected(Redirected(folder, path), flags,
                         [=](const char* name) { return next_openat64_2(folder, name, flags); });
}

FILE* fopen(const char* path, const char* mode) {
  return open_stream(path, mode, [=](const char* name) { return next_fopen(name, mode); });
}
FILE* fopen64(const char* path, const char* mode) {
  return open_stream(path, mode, [=](const char* name) { return next_fopen64(name, mode); });
}
FILE* freopen(const char* path, const char* mode, FILE* stream) {
  return next_freopen(Redirected(path).path(), mode, stream);
}
FILE* freopen64(const char* path, const char* mode, FILE* stream) {
  return next_freopen64(Redirected(path).path(), mode, stream);
}

}  // extern "C"
