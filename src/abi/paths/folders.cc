// opendir(3), scandir(3), chdir(2), glob(3).
#include <dirent.h>
#include <glob.h>
#include <unistd.h>

#include "abi/paths/next.h"
#include "abi/paths/redirected.h"

namespace verbena::abi::paths {
namespace {

using OpenFolder = DIR*(const char*);
using Filter = int(const dirent*);
using Order = int(const dirent**, const dirent**);
using Scan = int(const char*, dirent***, Filter*, Order*);
using Filter64 = int(const dirent64*);
using Order64 = int(const dirent64**, const dirent64**);
using Scan64 = int(const char*, dirent64***, Filter64*, Order64*);
using ScanAt = int(int, const char*, dirent***, Filter*, Order*);
using ScanAt64 = int(int, const char*, dirent64***, Filter64*, Order64*);
using ChangeFolder = int(const char*);
using OnError = int(const char*, int);
using Glob = int(const char*, int, OnError*, glob_t*);
using Glob64 = int(const char*, int, OnError*, glob64_t*);

constinit Next<OpenFolder> next_opendir{"opendir"};
constinit Next<Scan> next_scandir{"scandir"};
constinit Next<Scan64> next_scandir64{"scandir64"};
constinit Next<ScanAt> next_scandirat{"scandirat"};
constinit Next<ScanAt64> next_scandirat64{"scandirat64"};
constinit Next<ChangeFolder> next_chdir{"chdir"};
constinit Next<Glob> next_glob{"glob"};
constinit Next<Glob64> next_glob64{"glob64"};

[[gnu::constructor]] void find_folders_functions() {
  next_opendir.find();
  next_scandir.find();
  next_scandir64.find();
  next_scandirat.find();
  next_scandirat64.find();
  next_chdir.find();
  next_glob.find();
  next_glob64.find();
}

// The paths that a pattern has matched get the names by which the program knows them.
template <typename Found>
void restore_paths(const Found& found, std::size_t from) {
  for (std::size_t i = from; i < found.gl_pathc; ++i) restore(found.gl_pathv[found.gl_offs + i]);
}

}  // namespace
}  // namespace verbena::abi::paths

using namespace verbena::abi::paths;

extern "C" {

DIR* opendir(const char* path) { return next_opendir(Redirected(path).path()); }

int scandir(const char* path, dirent*** names, int (*filter)(const dirent*),
            int (*order)(const dirent**, const dirent**)) {
  return next_scandir(Redirected(path).path(), names, filter, order);
}
int scandir64(const char* path, dirent64*** names, int (*filter)(const dirent64*),
              int (*order)(const dirent64**, const dirent64**)) {
  return next_scandir64(Redirected(path).path(), names, filter, order);
}
int scandirat(int folder, const char* path, dirent*** names, int (*filter)(const dirent*),
              int (*order)(const dirent**, const dirent**)) {
  return next_scandirat(folder, Redirected(folder, path).path(), names, filter, order);
}
int scandirat64(int folder, const char* path, dirent64*** names, int (*filter)(const dirent64*),
                int (*order)(const dirent64**, const dirent64**)) {
  return next_scandirat64(folder, Redirected(folder, path).path(), names, filter, order);
}

int chdir(const char* path) noexcept { return next_chdir(Redirected(path).path()); }

int glob(const char* pattern, int flags, int (*on_error)(const char*, int), glob_t* found) {
  const std::size_t before = (flags & GLOB_APPEND) != 0 ? found->gl_pathc : 0;
  if ((flags & GLOB_DOOFFS) == 0) found->gl_offs = 0;
  const int result = next_glob(Redirected(pattern).path(), flags, on_error, found);
  if (result == 0) restore_paths(*found, before);
  return result;
}
int glob64(const char* pattern, int flags, int (*on_error)(const char*, int), glob64_t* found) {
  const std::size_t before = (flags & GLOB_APPEND) != 0 ? found->gl_pathc : 0;
  if ((flags & GLOB_DOOFFS) == 0) found->gl_offs = 0;
  const int result = next_glob64(Redirected(pattern).path(), flags, on_error, found);
  if (result == 0) restore_paths(*found, before);
  return result;
}

}  // extern "C"
