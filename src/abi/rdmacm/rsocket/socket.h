// Socket: an rsocket of either type: what the calls of rsocket(7) do with it, and waiting.
// Any thread may call; `mutex_` covers all but sleep. A thread that waits, here or in rpoll(),
// looks, arms the descriptors that bring news, looks again, and sleeps. Of several that sleep, the
// one that takes what came wakes the others through `wake_`; each then looks for itself. No sleep
// is longer than Defaults::longest_sleep.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "abi/rdmacm/results.h"
#include "abi/rdmacm/rsocket/settings.h"
#include "host/os/descriptor.h"

namespace verbena::rdmacm::rsocket {

using OptionKey = std::pair<int, int>;  // level and name

// NameBuffer: where an address goes or comes from. Both are nullptr if the program wants none.
struct NameBuffer {
  sockaddr* address = nullptr;
  socklen_t* length = nullptr;
};

class Socket {
 public:
  using Made = std::shared_ptr<Socket>;

  // `file_flags`: 0 or O_NONBLOCK.
  Socket(int domain, host::Descriptor wake, int file_flags)
      : domain_(domain), file_flags_(file_flags), wake_(std::move(wake)) {}
  virtual ~Socket() = default;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  [[nodiscard]] virtual int fd() const = 0;  // the program's name for it

  // As the functions of rsocket(7): a result, or -1 (nullptr) and errno.
  [[nodiscard]] virtual int bind(const sockaddr* address, socklen_t length) = 0;
  [[nodiscard]] virtual int listen(int backlog) = 0;
  [[nodiscard]] virtual Made accept() = 0;
  [[nodiscard]] virtual int connect(const sockaddr* address, socklen_t length) = 0;
  [[nodiscard]] virtual int shutdown(int how) = 0;
  virtual void close() = 0;  // wakes waiting calls; the last of them frees the rest
  [[nodiscard]] virtual ssize_t send(std::span<const iovec> parts, int flags, const sockaddr* to,
                                     socklen_t length) = 0;
  [[nodiscard]] virtual ssize_t receive(std::span<const iovec> parts, int flags,
                                        NameBuffer from) = 0;
  [[nodiscard]] virtual int local_name(NameBuffer name) = 0;
  [[nodiscard]] virtual int peer_name(NameBuffer name) = 0;
  [[nodiscard]] virtual int set_option(OptionKey key, const void* value, socklen_t length) = 0;
  [[nodiscard]] virtual int get_option(OptionKey key, void* value, socklen_t* length) = 0;
  [[nodiscard]] virtual off_t map(void* buffer, std::size_t length, int access, off_t offset) = 0;
  [[nodiscard]] virtual int unmap(void* buffer, std::size_t length) = 0;
  [[nodiscard]] virtual ssize_t write_mapped(const void* bytes, std::size_t length, off_t offset,
                                             int flags) = 0;
  [[nodiscard]] int control(int command, int argument);

  // Returns what poll() would report now. Sets errno to the reason if a connection was refused, and
  // else leaves it alone.
  [[nodiscard]] short ready(short events);
  // Appends the descriptors to sleep on. The caller looks once more before it sleeps, and calls
  // end_sleep() in any case.
  void begin_sleep(std::vector<pollfd>& to);
  void end_sleep();
  // Handles what has come, in the thread of the ConnectionService.
  void serve();

 protected:
  using Lock = std::unique_lock<std::mutex>;
  using Clock = std::chrono::steady_clock;

  virtual void look() = 0;  // handles what has come
  [[nodiscard]] virtual short ready_now(short events) = 0;
  virtual void arm(std::vector<pollfd>& to) = 0;
  virtual bool drain() = 0;  // of what arm() armed; returns true if something had come

  [[nodiscard]] bool is_nonblocking(int flags) const;
  void wake_all();  // those that sleep look again
  // 0 when done() is true; EAGAIN when that would take waiting, or time is up; EINTR after a
  // signal.
  template <typename Done>
  [[nodiscard]] int wait(Lock& lock, bool nonblocking, Done done,
                         Clock::time_point until = Clock::time_point::max());

  const int domain_;
  int file_flags_;
  std::mutex mutex_;
  Settings settings_ = defaults().settings;

 private:
  void register_sleep(std::vector<pollfd>& to);
  void unregister_sleep();
  // Returns 0 or an error number.
  [[nodiscard]] int sleep(Lock& lock, std::span<pollfd> on, Clock::time_point until);

  host::Descriptor wake_;  // an eventfd; readable: look again
  u32 sleepers_ = 0;
};

template <typename Done>
int Socket::wait(Lock& lock, bool nonblocking, Done done, Clock::time_point until) {
  look();
  if (done()) return 0;
  if (nonblocking) return fail(EAGAIN);
  const Clock::time_point sleep_from = Clock::now() + defaults().polling_time;
  for (;;) {
    const Clock::time_point now = Clock::now();
    if (now >= until) return fail(EAGAIN);
    if (now >= sleep_from) {
      std::vector<pollfd> on;
      register_sleep(on);
      look();
      const int error = done() ? 0 : sleep(lock, on, until);
      unregister_sleep();  // changes errno
      if (error != 0) return fail(error);
    }
    look();
    if (done()) return 0;
  }
}

// Has a program given all of the address, by its family?
[[nodiscard]] bool is_whole(const sockaddr* address, socklen_t length);
// `name`, as getsockname(2) gives names. 0, or -1 and errno.
[[nodiscard]] int give_name(const sockaddr& name, NameBuffer to);
// `from`, as getsockopt(2) gives values.
[[nodiscard]] int give_value(const void* from, std::size_t size, void* value, socklen_t* length);

// The options of RDMA and the buffer sizes, of either type. -1 and ENOPROTOOPT: none of them.
[[nodiscard]] int set_setting(Settings& settings, OptionKey key, const void* value,
                              socklen_t length);
[[nodiscard]] int get_setting(const Settings& settings, OptionKey key, void* value,
                              socklen_t* length);
[[nodiscard]] bool is_setting(OptionKey key);

}  // namespace verbena::rdmacm::rsocket
