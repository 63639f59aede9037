// Rsockets on a device of this process alone: both ends are here. Every wait has a limit.
#pragma once

#include <rdma/rsocket.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/rdmacm/rdmacm_fixture.h"

namespace verbena::test {

class RSocketTest : public RDMACMTest {
 protected:
  static constexpr int kLimit_ms = 30'000;

  void TearDown() override;

  // Closed with the test, unless the test does it.
  int make(int type = SOCK_STREAM, int domain = AF_INET);
  void close(int fd);
  int make_listener();
  // To a listener: in progress, and nonblocking.
  int start_connecting(int listener);
  int accept_from(int listener);

  struct Ends {
    int client = -1, server = -1;
  };
  // `prepare` sees both the listener and the client before they are used.
  Ends connect(const std::function<void(int)>& prepare = [](int) {});

  static sockaddr_in name_of(int fd);
  static void set(int fd, int level, int option, int value);
  static int get(int fd, int level, int option);
  static void set_blocking(int fd, bool blocking);
  // Returns the events of poll() as soon as there are any, or 0 after the limit.
  static int poll_one(int fd, short events, int limit_ms = kLimit_ms);

  static std::string text(std::size_t size, unsigned seed = 1);
  static void send_all(int fd, const std::string& text);
  static std::string receive_all(int fd, std::size_t size);  // what came before an end or a limit

 private:
  std::vector<int> open_;
};

}  // namespace verbena::test
