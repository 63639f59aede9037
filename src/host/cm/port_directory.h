// PortDirectory: the PortTable that the Verbena processes of one user and network namespace share:
// a small file beside that of Directory. Whoever changes it holds a file lock, which the kernel
// releases when its holder ends; whoever reads needs none. The file has two places for the table
// and a header that says which one counts, so a writer that is killed leaves the old table. What
// belongs to dead processes is ignored, and removed where it hinders.
#pragma once

#include <span>
#include <string>

#include "base/time.h"
#include "host/cm/port_table.h"
#include "host/descriptor.h"
#include "host/error.h"

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

}  // namespace verbena::host
