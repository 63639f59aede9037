// MappedFile: a file and its mapping. A source is mapped read-only; a target is made under the name
// FILE.part in its full size, and gets its name when it is complete.
#pragma once

#include <span>
#include <string>

#include <sys/stat.h>

#include "transfer/list.h"

namespace verbena::models {

using transfer::Expected;

struct FileIdentity {
  u64 inode = 0, bytes = 0;
  u64 modified_ns = 0, changed_ns = 0;  // since 1970: st_mtim, st_ctim
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

class MappedFile {
 public:
  MappedFile() = default;
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }
  MappedFile& operator=(MappedFile&& other) noexcept;

  [[nodiscard]] static Expected<MappedFile> open_source(const std::string& path);
  // Fails if another process writes to it. had_bytes() tells what an earlier attempt left there.
  [[nodiscard]] static Expected<MappedFile> make_target(const std::string& path, u64 bytes);
  // The name of a target that is not complete.
  [[nodiscard]] static std::string part_path(const std::string& path) { return path + ".part"; }
  // Anonymous memory.
  [[nodiscard]] static Expected<MappedFile> make_memory(u64 bytes);

  [[nodiscard]] u8* data() const { return data_; }
  [[nodiscard]] u64 bytes() const { return bytes_; }
  [[nodiscard]] u64 had_bytes() const { return had_bytes_; }
  [[nodiscard]] bool is_file() const { return file_ >= 0; }
  // Returns 0, or an errno.
  [[nodiscard]] int write_at(u64 offset, std::span<const u8> from) const;
  [[nodiscard]] std::string write_failure(int error) const;  // one line for the user
  // Reads from the file, not from the mapping, which cannot be read where the file was cut.
  [[nodiscard]] bool read_at(u64 offset, std::span<u8> to) const;
  [[nodiscard]] FileIdentity identity() const;  // of a source, when it was opened
  // Whether a source is another one than when it was opened.
  [[nodiscard]] bool has_changed() const;
  // The target gets its name; the data is on the disk.
  [[nodiscard]] Expected<void> complete();

 private:
  [[nodiscard]] Expected<void> map(int protection);
  [[nodiscard]] std::string no_room() const;
  int file_ = -1;
  u8* data_ = nullptr;
  u64 bytes_ = 0, had_bytes_ = 0;
  std::string path_{}, part_path_{};
  bool is_source_ = false;
  struct stat status_ {};
};

}  // namespace verbena::models
