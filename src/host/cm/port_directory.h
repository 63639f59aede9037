// PortDirectory: the PortTable that the Verbena processes of one user and network namespace share:
// a small file beside that of Directory. A writer holds a file lock, which the kernel releases when
// its holder ends; a reader needs none. The file has two places for the table and a header that
// says which one counts, so a writer that is killed leaves the old table. Entries of dead processes
// are ignored, and removed when they conflict with a new entry.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <span>
#include <string>
#include <utility>

#include "base/time.h"
#include "host/cm/port_table.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"

namespace verbena::host {

struct PortPlace {
  GID address{};
  u32 slot = 0;  // of the adapter on it
};

struct PortRequest {
  PortSpace space = PortSpace::kTCP;
  u16 port = 0;  // 0: any free one
  bool reusable = false;
  std::span<const PortPlace> places;  // on all of them, or on none
};

struct BoundPort {
  u64 owner = 0;
  u16 port = 0;
};

class PortDirectory {
 public:
  [[nodiscard]] static Expected<PortDirectory> open();
  [[nodiscard]] static Expected<PortDirectory> open_file(const std::string& path);

  // EADDRINUSE; EADDRNOTAVAIL: no port is free. Waits for other processes for a few seconds at
  // most.
  [[nodiscard]] Expected<BoundPort> bind(const PortRequest& request);
  // From now on found as a listener. EADDRINUSE: another, bound as reusable, has the port as well.
  [[nodiscard]] Expected<void> listen(u64 owner);
  void release(u64 owner);
  void forget(u32 slot);

  // Never blocks.
  [[nodiscard]] PortTable read() const;

 private:
  struct Header;
  PortDirectory(Descriptor file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}
  [[nodiscard]] Header read_header() const;
  [[nodiscard]] bool read_records(const Header& header, std::vector<PortRecord>& out) const;
  [[nodiscard]] Expected<void> write(const PortTable& table);
  template <typename Change>
  [[nodiscard]] Expected<void> change(Change&& apply);

  Descriptor file_;
  std::string path_;
};

// A port that this process has bound in the common directory: released when this is destroyed. A
// child of fork() inherits a copy, whose end leaves the parent's port bound.
class HeldPort {
 public:
  HeldPort() = default;
  explicit HeldPort(u64 owner) : owner_(owner), process_(::getpid()) {}
  ~HeldPort() { release(); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;
  HeldPort& operator=(HeldPort&& other) noexcept {
    release();
    owner_ = std::exchange(other.owner_, 0);
    process_ = other.process_;
    return *this;
  }

  [[nodiscard]] u64 owner() const { return owner_; }  // 0: none
  void release();

 private:
  u64 owner_ = 0;
  pid_t process_ = 0;
};

}  // namespace verbena::host
