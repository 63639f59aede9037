// Redirected: the name under which a file is to be looked for, in place of the one that a program
// gave to a function of the C library.
#pragma once

#include <climits>

#include "abi/paths/tree.h"

namespace verbena::abi::paths {

// That of this process: what the environment said when it started.
[[nodiscard]] const Tree& tree();

class Redirected {
 public:
  explicit Redirected(const char* path);     // relative to the working folder, or absolute
  Redirected(int folder, const char* path);  // ... to an open folder or AT_FDCWD: openat(2)
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

  // Returns the given path if nothing is redirected; so nullptr remains nullptr.
  [[nodiscard]] const char* path() const { return path_; }
  [[nodiscard]] bool is_redirected() const { return path_ == buffer_; }

 private:
  const char* path_;
  char buffer_[PATH_MAX];
};

// Makes of a real name in `text` the name that programs know; other names remain.
void restore(char* text);

}  // namespace verbena::abi::paths
