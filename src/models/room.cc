#include "models/room.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>

#include "models/handles.h"
#include "models/mapped_file.h"

namespace verbena::models {

void Room::need(const std::string& path, u64 bytes) {
  const std::string folder = std::filesystem::absolute(path).parent_path();
  struct statvfs room {};
  struct stat place {
  }, part{};
  if (stat(folder.c_str(), &place) != 0 || statvfs(folder.c_str(), &room) != 0) return;
  if (room.f_blocks == 0) return;  // it does not tell its size, as a tmpfs without limit
  const bool has_part = stat(MappedFile::part_path(path).c_str(), &part) == 0;
  const u64 has = has_part ? static_cast<u64>(part.st_blocks) * 512 : 0;
  FileSystem& there = file_systems_[place.st_dev];
  there.free = u64{room.f_bavail} * room.f_frsize;
  there.needed += bytes - std::min(bytes, has);
}

Expected<void> Room::check(const std::string& what) const {
  for (const auto& [device, there] : file_systems_)
    if (there.needed > there.free)
      return tl::unexpected(what + ": no room for " + size_text(there.needed) + ": " +
                            size_text(there.free) + " are free");
  return {};
}

}  // namespace verbena::models
