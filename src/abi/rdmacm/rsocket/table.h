// Table: which descriptors of this process are rsockets, or lists of them to wait for.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

namespace verbena::rdmacm::rsocket {

// A descriptor is in at most one Table. Any thread.
template <typename Object>
class Table {
 public:
  void add(int fd, std::shared_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    objects_[fd] = std::move(object);
  }
  // Returns nullptr if `fd` is none of the table's.
  [[nodiscard]] std::shared_ptr<Object> find(int fd) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(fd);
    return found == objects_.end() ? nullptr : found->second;
  }
  std::shared_ptr<Object> take(int fd) {
    const std::lock_guard lock(mutex_);
    auto node = objects_.extract(fd);
    return node.empty() ? nullptr : std::move(node.mapped());
  }

 private:
  std::mutex mutex_;
  std::unordered_map<int, std::shared_ptr<Object>> objects_;
};

class Socket;
Table<Socket>& sockets();  // never destroyed: programs may use rsockets until the end

}  // namespace verbena::rdmacm::rsocket
