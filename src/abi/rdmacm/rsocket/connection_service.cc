#include "abi/rdmacm/rsocket/connection_service.h"

#include <signal.h>
#include <sys/epoll.h>

#include <array>
#include <cerrno>

#include "abi/rdmacm/rsocket/socket.h"

namespace verbena::rdmacm::rsocket {
namespace {

// The thread takes no signals, which are the program's, but the faults of its own accesses:
// host/os/memory_faults.h. 0, or an errno.
int create_thread(void* (*run)(void*), void* argument) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigdelset(&all, SIGSEGV);
  ::sigdelset(&all, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const int error = pthread_create(&thread, nullptr, run, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return error;
  pthread_setname_np(thread, "verbena-rsocket");
  return pthread_detach(thread);
}

}  // namespace

ConnectionService& ConnectionService::instance() {
  static ConnectionService* const service = [] {
    auto* const made = new ConnectionService;
    pthread_atfork([] { instance().lock_for_fork(); }, [] { instance().unlock_after_fork(); },
                   [] { instance().start_anew_in_child(); });
    return made;
  }();
  return *service;
}

bool ConnectionService::start() {
  const std::lock_guard lock(mutex_);
  if (is_running_) return true;
  if (!poll_.is_open()) poll_ = host::Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!poll_.is_open()) return false;
  const auto run = [](void* self) -> void* {
    static_cast<ConnectionService*>(self)->run();
    return nullptr;
  };
  errno = create_thread(run, this);
  return is_running_ = errno == 0;
}

void ConnectionService::watch(int fd, std::weak_ptr<Socket> socket) {
  const std::lock_guard lock(mutex_);
  sockets_[fd] = std::move(socket);
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  (void)::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void ConnectionService::ignore(int fd) {
  const std::lock_guard lock(mutex_);
  if (sockets_.erase(fd) != 0) (void)::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

std::shared_ptr<Socket> ConnectionService::find(int fd) {
  const std::lock_guard lock(mutex_);
  const auto found = sockets_.find(fd);
  return found == sockets_.end() ? nullptr : found->second.lock();
}

void ConnectionService::run() {
  constexpr int kBatch = 16;
  std::array<epoll_event, kBatch> ready;
  for (;;) {
    const int count = ::epoll_wait(poll_.get(), ready.data(), kBatch, -1);
    for (int i = 0; i < count; ++i) {
      const std::lock_guard serving(serving_);
      if (const auto socket = find(ready[static_cast<std::size_t>(i)].data.fd)) socket->serve();
    }
  }
}

void ConnectionService::lock_for_fork() {
  serving_.lock();
  mutex_.lock();
}

void ConnectionService::unlock_after_fork() {
  mutex_.unlock();
  serving_.unlock();
}

// The child has no thread, and its descriptor is the parent's epoll set, which it must not change.
void ConnectionService::start_anew_in_child() {
  poll_ = host::Descriptor();
  is_running_ = false;
  sockets_.clear();
  unlock_after_fork();
}

}  // namespace verbena::rdmacm::rsocket
