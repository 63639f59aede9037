// WaitList: what one descriptor of repoll_create() waits for. Any thread.
#pragma once

#include <poll.h>
#include <sys/epoll.h>

#include <map>
#include <span>
#include <vector>

#include "abi/rdmacm/rsocket/table.h"
#include "host/os/descriptor.h"

namespace verbena::rdmacm::rsocket {

class WaitList {
 public:
  explicit WaitList(host::Descriptor changed) : changed_(std::move(changed)) {}

  [[nodiscard]] int fd() const { return changed_.get(); }
  // Returns 0, or -1 and sets errno. Waiting calls take notice of the change.
  [[nodiscard]] int change(int operation, int fd, const epoll_event* event);
  // The first: readable when change() has been called.
  [[nodiscard]] std::vector<pollfd> asked();
  void on_change_seen();
  // Their count.
  [[nodiscard]] int report(std::span<const pollfd> polled, std::span<epoll_event> to);

 private:
  host::Descriptor changed_;  // an eventfd
  std::mutex mutex_;
  std::map<int, epoll_event> entries_;
};

Table<WaitList>& wait_lists();  // never destroyed, as sockets()

}  // namespace verbena::rdmacm::rsocket
