// Waiting for many: rpoll, rselect. Rsockets and other descriptors mix.
#include <rdma/rsocket.h>
#include <sys/select.h>

#include <algorithm>
#include <climits>
#include <optional>

#include "abi/ibverbs/exceptions.h"
#include "abi/rdmacm/rsocket/socket.h"
#include "abi/rdmacm/rsocket/table.h"

namespace verbena::rdmacm::rsocket {
namespace {

constexpr nfds_t kMostDescriptors = 1U << 20;  // as Linux's nr_open, unless it is changed

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// One call of rpoll().
class Poll {
 public:
  explicit Poll(std::span<pollfd> asked) : asked_(asked) {
    for (const pollfd& one : asked) {
      found_.push_back(one.fd < 0 ? nullptr : sockets().find(one.fd));
      (found_.back() != nullptr ? has_rsockets_ : has_others_) = true;
    }
  }

  [[nodiscard]] bool has_rsockets() const { return has_rsockets_; }

  // The count of what is ready, with `revents` set; or -1 and errno.
  [[nodiscard]] int look() {
    const int rsockets = look_at_rsockets();
    if (!has_others_) return rsockets;
    std::vector<pollfd> on = others();
    const int count = ::poll(on.data(), on.size(), 0);
    if (count < 0) return -1;
    for (std::size_t i = 0; i < asked_.size(); ++i)
      if (found_[i] == nullptr) asked_[i].revents = on[i].revents;
    return rsockets + count;
  }

  // Until something may be ready. 0, or -1 and errno.
  [[nodiscard]] int sleep(milliseconds limit) {
    std::vector<pollfd> on = others();
    for (const auto& socket : found_)
      if (socket != nullptr) socket->begin_sleep(on);
    int slept = 0, error = 0;
    if (look_at_rsockets() == 0) {
      slept = ::poll(on.data(), on.size(), static_cast<int>(limit.count()));
      error = errno;
    }
    for (const auto& socket : found_)
      if (socket != nullptr) socket->end_sleep();
    return slept < 0 ? fail(error) : 0;
  }

 private:
  int look_at_rsockets() {
    int count = 0;
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (found_[i] == nullptr) continue;
      asked_[i].revents = found_[i]->ready(asked_[i].events);
      count += asked_[i].revents != 0 ? 1 : 0;
    }
    return count;
  }

  // All that were asked for, the rsockets blanked out.
  [[nodiscard]] std::vector<pollfd> others() const {
    std::vector<pollfd> on(asked_.begin(), asked_.end());
    for (std::size_t i = 0; i < on.size(); ++i)
      if (found_[i] != nullptr) on[i].fd = -1;
    return on;
  }

  std::span<pollfd> asked_;
  std::vector<std::shared_ptr<Socket>> found_;  // nullptr if it is no rsocket
  bool has_rsockets_ = false, has_others_ = false;
};

int poll_mixed(Poll& poll, int timeout_ms) {
  const Clock::time_point start = Clock::now();
  const Clock::time_point sleep_from = start + defaults().polling_time;
  const int before = errno;
  const auto until = timeout_ms < 0 ? Clock::time_point::max() : start + milliseconds(timeout_ms);
  for (;;) {
    errno = before;
    if (const int count = poll.look(); count != 0) return count;
    const Clock::time_point now = Clock::now();
    if (now >= until) return 0;
    if (now < sleep_from) continue;
    const milliseconds left = std::chrono::ceil<milliseconds>(until - now);
    if (poll.sleep(std::min(left, defaults().longest_sleep)) != 0) return -1;
  }
}

}  // namespace
}  // namespace verbena::rdmacm::rsocket

using namespace verbena::rdmacm;
using namespace verbena::rdmacm::rsocket;

int rpoll(pollfd* descriptors, nfds_t count, int timeout_ms) try {
  if (descriptors == nullptr && count != 0) return fail(EFAULT);
  if (count > kMostDescriptors) return fail(EINVAL);
  Poll poll(std::span(descriptors, count));
  if (!poll.has_rsockets()) return ::poll(descriptors, count, timeout_ms);
  return poll_mixed(poll, timeout_ms);
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

// --- rselect

namespace {

struct Sets {
  fd_set *readable, *writable, *exceptional;
};

bool has(fd_set* set, int fd) { return set != nullptr && FD_ISSET(fd, set); }

std::vector<pollfd> asked_for(int count, const Sets& sets) {
  std::vector<pollfd> asked;
  for (int fd = 0; fd < count; ++fd) {
    const int events = (has(sets.readable, fd) ? POLLIN : 0) |
                       (has(sets.writable, fd) ? POLLOUT : 0) |
                       (has(sets.exceptional, fd) ? POLLPRI : 0);
    if (events != 0)
      asked.push_back({.fd = fd, .events = static_cast<short>(events), .revents = 0});
  }
  return asked;
}

// 1: it stays in the set.
int keep(fd_set* set, const pollfd& one, int meaning) {
  if (!has(set, one.fd)) return 0;
  if ((one.revents & meaning) != 0) return 1;
  FD_CLR(one.fd, set);
  return 0;
}

// Returns nullopt if the time is invalid, and -1 if there is none.
std::optional<int> milliseconds_of(const timeval* timeout) {
  if (timeout == nullptr) return -1;
  if (timeout->tv_sec < 0 || timeout->tv_usec < 0 || timeout->tv_usec >= 1'000'000)
    return std::nullopt;
  if (timeout->tv_sec >= INT_MAX / 1000) return INT_MAX;
  return static_cast<int>(timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000);
}

}  // namespace

int rselect(int count, fd_set* readable, fd_set* writable, fd_set* exceptional,
            timeval* timeout) try {
  const std::optional<int> timeout_ms = milliseconds_of(timeout);
  if (count < 0 || count > FD_SETSIZE || !timeout_ms) return fail(EINVAL);
  std::vector<pollfd> asked = asked_for(count, {readable, writable, exceptional});
  if (rpoll(asked.data(), asked.size(), *timeout_ms) < 0) return -1;
  int found = 0;
  for (const pollfd& one : asked)
    if ((one.revents & POLLNVAL) != 0) return fail(EBADF);
  for (const pollfd& one : asked) {
    found += keep(readable, one, POLLIN | POLLHUP | POLLERR);
    found += keep(writable, one, POLLOUT | POLLERR);
    found += keep(exceptional, one, POLLPRI | POLLERR | POLLHUP);
  }
  return found;
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}
