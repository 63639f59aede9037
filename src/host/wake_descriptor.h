// WakeDescriptor: what a program gives to poll(), epoll or select() to wait for the events of a
// queue. Readable while the queue's own descriptor is. While it listens, also readable as soon as
// something arrives on the adapter's link: the program then receives that itself, and no helper
// thread has to wake up first. It is an epoll of both. Its O_NONBLOCK is the application's.
#pragma once

#include "host/descriptor.h"
#include "host/error.h"

namespace verbena::host {

class WakeDescriptor {
 public:
  [[nodiscard]] static Expected<WakeDescriptor> open(int events);

  [[nodiscard]] int fd() const { return poll_.get(); }
  [[nodiscard]] bool blocks() const;  // O_NONBLOCK is not set on it
  // Not thread-safe; the adapter's lock guards them. `arrivals`: the same each time.
  void listen(int arrivals);
  void ignore(int arrivals);

 private:
  enum class Listens { kNever, kNo, kYes };
  explicit WakeDescriptor(Descriptor poll) : poll_(std::move(poll)) {}

  Descriptor poll_;
  Listens listens_ = Listens::kNever;
};

}  // namespace verbena::host
