// Another libibverbs than ours in this process: the loader found it through a DT_RPATH, or the
// program opened it by its absolute name, and then LD_LIBRARY_PATH does not count. Such a program
// looks for devices in /sys, finds no driver for ours, and says nothing that helps.
#pragma once

#include <string_view>

namespace verbena::abi::paths {

// One line of /proc/PID/maps. proc(5). Looks for the two libraries in all lines of a process.
class LoadedLibraries {
 public:
  static constexpr std::size_t kLongest = 4096;  // PATH_MAX

  void on_line(std::string_view line);
  // The path of a libibverbs that is not in the folder of this library; empty: none, or ours, too.
  [[nodiscard]] std::string_view other() const;

 private:
  // A path as it was seen last.
  struct Path {
    char text[kLongest] = {};
    std::size_t length = 0;
    void set(std::string_view path);
    [[nodiscard]] std::string_view view() const { return {text, length}; }
  };
  static constexpr std::size_t kMost = 4;  // libraries of that name in one process
  Path own_;                               // this library
  Path found_[kMost];
  std::size_t count_ = 0;
};

// Says so on standard error, once for each process.
void warn_of_other_library();

}  // namespace verbena::abi::paths
