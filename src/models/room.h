// Room: what the files of a fetch need on each file system, to be compared with what is free there
// before the first file is made.
#pragma once

#include <map>
#include <string>

#include <sys/types.h>

#include "transfer/list.h"

namespace verbena::models {

using transfer::Expected;

class Room {
 public:
  // A file of so many bytes, which MappedFile::make_target() will make. Its folder is there.
  // Blocks that an earlier attempt wrote are not needed again.
  void need(const std::string& path, u64 bytes);
  // Fails with one line that begins with `what` if a file system has less than is needed.
  [[nodiscard]] Expected<void> check(const std::string& what) const;

 private:
  struct FileSystem {
    u64 needed = 0, free = 0;  // bytes
  };
  std::map<dev_t, FileSystem> file_systems_{};
};

}  // namespace verbena::models
