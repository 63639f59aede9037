// EventDescriptor: an eventfd that counts events; readable while the count is not 0.
#pragma once

#include "base/types.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"

namespace verbena::host {

class EventDescriptor {
 public:
  [[nodiscard]] static Expected<EventDescriptor> open();

  [[nodiscard]] int fd() const { return fd_.get(); }
  void add();                         // one event; never blocks
  [[nodiscard]] bool blocks() const;  // O_NONBLOCK is not set on it
  // Takes one from the count, blocking as the descriptor's O_NONBLOCK says. 0, or an errno.
  [[nodiscard]] int take();
  void try_take();               // takes one if there is one; never blocks
  void close() { fd_.reset(); }  // from here on take() gives EBADF; who blocks in it stays there

 private:
  explicit EventDescriptor(Descriptor fd) : fd_(std::move(fd)) {}
  Descriptor fd_;
};

}  // namespace verbena::host
