// ConnectionService: one thread of the process that looks at stream rsockets while no thread of the
// program does: it accepts connections for sockets that listen, and completes connections under
// way. So connect() returns before the peer calls accept(), as with TCP and with librdmacm's own
// service threads.
#pragma once

#include <pthread.h>

#include <memory>
#include <mutex>
#include <unordered_map>

#include "host/os/descriptor.h"

namespace verbena::rdmacm::rsocket {

class Socket;

class ConnectionService {
 public:
  // That of this process: a child of fork() has one of its own. Never destroyed.
  [[nodiscard]] static ConnectionService& instance();

  // Starts the thread if it does not run. False: there is none, and errno says why.
  [[nodiscard]] bool start();
  // The thread calls Socket::serve() whenever `fd` is readable, until ignore(fd). Both may be
  // called with the socket locked.
  void watch(int fd, std::weak_ptr<Socket> socket);
  void ignore(int fd);

 private:
  void run();
  [[nodiscard]] std::shared_ptr<Socket> find(int fd);
  void lock_for_fork();
  void unlock_after_fork();
  void start_anew_in_child();

  std::mutex mutex_;  // guards what follows; no socket is called with it locked
  host::Descriptor poll_;
  bool is_running_ = false;
  std::unordered_map<int, std::weak_ptr<Socket>> sockets_;
  std::mutex serving_;  // locked while the thread is in a socket, so that fork() finds none locked
};

}  // namespace verbena::rdmacm::rsocket
