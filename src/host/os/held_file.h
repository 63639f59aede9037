// HeldFile: the file behind a descriptor, by its inode, which is kept from being used again as long
// as this lives, whatever the descriptor's owner does.
#pragma once

#include "base/types.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"

namespace verbena::host {

class HeldFile {
 public:
  [[nodiscard]] static Expected<HeldFile> hold(int fd);

  struct Inode {
    u64 device = 0, number = 0;
    friend auto operator<=>(const Inode&, const Inode&) = default;
  };
  [[nodiscard]] const Inode& inode() const { return inode_; }

 private:
  HeldFile(Descriptor copy, const Inode& inode) : copy_(std::move(copy)), inode_(inode) {}

  Descriptor copy_;
  Inode inode_;
};

}  // namespace verbena::host
