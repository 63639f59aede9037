// HashCache: chunk hashes that `model serve` keeps in a file beside the model, so that the next run
// need not read the model. An entry counts only while the file is the same one: name, inode, size,
// time of modification and time of the last change of its inode. Programs can set the former time,
// but not the latter.
//
// The fetcher compares each chunk with its hash in any case. So an entry that is wrong makes
// fetches fail, and delivers no wrong byte.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/mapped_file.h"
#include "transfer/blake3.h"

namespace verbena::models {

class HashCache {
 public:
  static constexpr const char* kFileName = ".verbena-hashes";
  static constexpr u64 kMaxBytes = u64{1} << 30;  // of the cache's file
  // Two changes within this time can leave one time stamp: FAT counts in steps of 2 s.
  static constexpr u64 kSettledNs = 2'000'000'000;

  // Returns nullptr if the file is unknown, another one than it was, or has chunks of another size.
  [[nodiscard]] const std::vector<transfer::Hash>* find(const std::string& name,
                                                        const FileIdentity& identity,
                                                        u64 chunk_bytes) const;
  // `hashed_at_ns` is when the first byte was read. A file that changed shortly before is left
  // out, because a change during the hashing could have the same time stamp.
  void keep(const std::string& name, const FileIdentity& identity, u64 chunk_bytes,
            std::vector<transfer::Hash> hashes, u64 hashed_at_ns);
  // Drops the files with other names.
  void retain(const std::vector<std::string>& names);
  [[nodiscard]] std::size_t files() const { return entries_.size(); }

  [[nodiscard]] std::string encode() const;
  // Returns an empty cache for bytes that encode() did not produce.
  [[nodiscard]] static HashCache decode(std::string_view bytes);
  // Returns an empty cache if there is no such file.
  [[nodiscard]] static HashCache load(const std::string& path);
  // Replaces the file as a whole.
  [[nodiscard]] Expected<void> save(const std::string& path) const;
  friend bool operator==(const HashCache&, const HashCache&) = default;

 private:
  struct Entry {
    FileIdentity identity{};
    u64 chunk_bytes = 0;
    std::vector<transfer::Hash> hashes{};
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::map<std::string, Entry> entries_{};
};

}  // namespace verbena::models
