// Directory: the shared memory of the Verbena processes of one user and network namespace: which
// slot has which socket in the kernel's group on each address. A small file in shared memory, under
// a file lock that the kernel releases when its holder ends. It is a record of the layout, not the
// authority: the kernel has the layout, and PortGroup probes for it if the record is missing,
// damaged or out of date.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"
#include "wire/ib/gid.h"

namespace verbena::host {

inline constexpr u32 kUnknownIndex = ~0u;

struct Membership {
  GID address{};
  u32 slot = 0;
  u32 index = kUnknownIndex;  // of the socket in the kernel's group
  friend bool operator==(const Membership&, const Membership&) = default;
};

struct DirectoryTable {
  static constexpr std::size_t kMaxMembers = 4096;
  u64 generation = 0;  // counts writes; lets one see whether another wrote
  std::vector<Membership> members;

  // The process that had `slot` is gone without goodbye: which of the others on its addresses took
  // its socket's place is not known.
  void forget(u32 slot);
};

class Directory {
 public:
  // Opens or makes the file in the first usable of /dev/shm, $XDG_RUNTIME_DIR and /tmp.
  [[nodiscard]] static Expected<Directory> open();
  // The same for a file of one's own choice.
  [[nodiscard]] static Expected<Directory> open_file(const std::string& path);

  // Exclusive against all other holders, in this process too, until it is destroyed.
  class Lock {
   public:
    explicit Lock(int fd) : fd_(fd) {}
    ~Lock();
    Lock(Lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Lock& operator=(Lock&&) = delete;

   private:
    int fd_;
  };
  // Waits for at most `patience`.
  [[nodiscard]] Expected<Lock> lock(Duration patience);

  // Empty when the file is new or damaged.
  [[nodiscard]] DirectoryTable read() const;
  // With the lock held. Counts up table.generation. A failure to write shows as an empty table.
  void write(DirectoryTable& table);

  void close() { file_.reset(); }

 private:
  explicit Directory(Descriptor file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  Descriptor file_;
  std::string path_;
};

// For other files of this kind: where such a file of this user and network namespace may be, the
// best place first; one opened, made if it is not there; and its lock.
[[nodiscard]] u64 network_namespace();  // of this process; 0: unknown
[[nodiscard]] std::vector<std::string> shared_file_paths();
[[nodiscard]] Expected<Descriptor> open_shared_file(const std::string& path);
[[nodiscard]] Expected<Directory::Lock> lock_shared_file(int fd, const std::string& path,
                                                         Duration patience);

}  // namespace verbena::host
