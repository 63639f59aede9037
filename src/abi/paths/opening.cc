// open(2) and fopen(3) and their relatives. The names with _2 are what _FORTIFY_SOURCE calls.
#include <fcntl.h>

#include <cstdarg>
#include <cstdio>

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

[[gnu::constructor]] void find_functions() {
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

}  // namespace
}  // namespace verbena::abi::paths

using namespace verbena::abi::paths;

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return next_open(Redirected(path).path(), flags, mode);
}
int open64(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return next_open64(Redirected(path).path(), flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return next_openat(folder, Redirected(folder, path).path(), flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return next_openat64(folder, Redirected(folder, path).path(), flags, mode);
}
int __open_2(const char* path, int flags) { return next_open_2(Redirected(path).path(), flags); }
int __open64_2(const char* path, int flags) {
  return next_open64_2(Redirected(path).path(), flags);
}
int __openat_2(int folder, const char* path, int flags) {
  return next_openat_2(folder, Redirected(folder, path).path(), flags);
}
int __openat64_2(int folder, const char* path, int flags) {
  return next_openat64_2(folder, Redirected(folder, path).path(), flags);
}

FILE* fopen(const char* path, const char* mode) {
  return next_fopen(Redirected(path).path(), mode);
}
FILE* fopen64(const char* path, const char* mode) {
  return next_fopen64(Redirected(path).path(), mode);
}
FILE* freopen(const char* path, const char* mode, FILE* stream) {
  return next_freopen(Redirected(path).path(), mode, stream);
}
FILE* freopen64(const char* path, const char* mode, FILE* stream) {
  return next_freopen64(Redirected(path).path(), mode, stream);
}

}  // extern "C"
