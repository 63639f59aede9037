// stat(2) and its relatives, access(2), extended attributes. The __xstat family is what programs
// call that were built with a C library before 2.33.
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "abi/paths/next.h"
#include "abi/paths/redirected.h"

namespace verbena::abi::paths {
namespace {

using StatusOf = int(const char*, void*);
using StatusAt = int(int, const char*, void*, int);
using OldStatusOf = int(int, const char*, void*);
using OldStatusAt = int(int, int, const char*, void*, int);
using StatusX = int(int, const char*, int, unsigned, void*);
using Access = int(const char*, int);
using AccessAt = int(int, const char*, int, int);
using GetAttribute = ssize_t(const char*, const char*, void*, std::size_t);
using ListAttributes = ssize_t(const char*, char*, std::size_t);

constinit Next<StatusOf> next_stat{"stat"}, next_stat64{"stat64"}, next_lstat{"lstat"},
    next_lstat64{"lstat64"};
constinit Next<StatusAt> next_fstatat{"fstatat"}, next_fstatat64{"fstatat64"};
constinit Next<OldStatusOf> next_xstat{"__xstat"}, next_xstat64{"__xstat64"},
    next_lxstat{"__lxstat"}, next_lxstat64{"__lxstat64"};
constinit Next<OldStatusAt> next_fxstatat{"__fxstatat"}, next_fxstatat64{"__fxstatat64"};
constinit Next<StatusX> next_statx{"statx"};
constinit Next<Access> next_access{"access"}, next_euidaccess{"euidaccess"},
    next_eaccess{"eaccess"};
constinit Next<AccessAt> next_faccessat{"faccessat"};
constinit Next<GetAttribute> next_getxattr{"getxattr"}, next_lgetxattr{"lgetxattr"};
constinit Next<ListAttributes> next_listxattr{"listxattr"}, next_llistxattr{"llistxattr"};

template <typename... Functions>
void find_all(Functions&... functions) {
  (functions.find(), ...);
}

[[gnu::constructor]] void find_status_functions() {
  find_all(next_stat, next_stat64, next_lstat, next_lstat64, next_fstatat, next_fstatat64);
  find_all(next_xstat, next_xstat64, next_lxstat, next_lxstat64, next_fxstatat, next_fxstatat64);
  find_all(next_statx, next_access, next_euidaccess, next_eaccess, next_faccessat);
  find_all(next_getxattr, next_lgetxattr, next_listxattr, next_llistxattr);
}

}  // namespace
}  // namespace verbena::abi::paths

using namespace verbena::abi::paths;

extern "C" {

int stat(const char* path, struct stat* out) noexcept {
  return next_stat(Redirected(path).path(), out);
}
int stat64(const char* path, struct stat64* out) noexcept {
  return next_stat64(Redirected(path).path(), out);
}
int lstat(const char* path, struct stat* out) noexcept {
  return next_lstat(Redirected(path).path(), out);
}
int lstat64(const char* path, struct stat64* out) noexcept {
  return next_lstat64(Redirected(path).path(), out);
}
int fstatat(int folder, const char* path, struct stat* out, int flags) noexcept {
  return next_fstatat(folder, Redirected(folder, path).path(), out, flags);
}
int fstatat64(int folder, const char* path, struct stat64* out, int flags) noexcept {
  return next_fstatat64(folder, Redirected(folder, path).path(), out, flags);
}
int statx(int folder, const char* path, int flags, unsigned mask, struct statx* out) noexcept {
  return next_statx(folder, Redirected(folder, path).path(), flags, mask, out);
}

int __xstat(int version, const char* path, struct stat* out) {
  return next_xstat(version, Redirected(path).path(), out);
}
int __xstat64(int version, const char* path, struct stat64* out) {
  return next_xstat64(version, Redirected(path).path(), out);
}
int __lxstat(int version, const char* path, struct stat* out) {
  return next_lxstat(version, Redirected(path).path(), out);
}
int __lxstat64(int version, const char* path, struct stat64* out) {
  return next_lxstat64(version, Redirected(path).path(), out);
}
int __fxstatat(int version, int folder, const char* path, struct stat* out, int flags) {
  return next_fxstatat(version, folder, Redirected(folder, path).path(), out, flags);
}
int __fxstatat64(int version, int folder, const char* path, struct stat64* out, int flags) {
  return next_fxstatat64(version, folder, Redirected(folder, path).path(), out, flags);
}

int access(const char* path, int mode) noexcept {
  return next_access(Redirected(path).path(), mode);
}
int euidaccess(const char* path, int mode) noexcept {
  return next_euidaccess(Redirected(path).path(), mode);
}
int eaccess(const char* path, int mode) noexcept {
  return next_eaccess(Redirected(path).path(), mode);
}
int faccessat(int folder, const char* path, int mode, int flags) noexcept {
  return next_faccessat(folder, Redirected(folder, path).path(), mode, flags);
}

ssize_t getxattr(const char* path, const char* name, void* value, std::size_t size) noexcept {
  return next_getxattr(Redirected(path).path(), name, value, size);
}
ssize_t lgetxattr(const char* path, const char* name, void* value, std::size_t size) noexcept {
  return next_lgetxattr(Redirected(path).path(), name, value, size);
}
ssize_t listxattr(const char* path, char* list, std::size_t size) noexcept {
  return next_listxattr(Redirected(path).path(), list, size);
}
ssize_t llistxattr(const char* path, char* list, std::size_t size) noexcept {
  return next_llistxattr(Redirected(path).path(), list, size);
}

}  // extern "C"
