// The behaviour that programs written for TCP rely on while a stream rsocket connects: connections
// are made without a call of accept(), up to the backlog, and each stage has TCP's errors and
// names.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "tests/rdmacm/rsocket_fixture.h"

namespace verbena::test {
namespace {

class RSocketConnectingTest : public RSocketTest {
 protected:
  int make_listener_of(int backlog) {
    const int fd = make();
    sockaddr_in here = address(own_address(), 0);
    EXPECT_EQ(rbind(fd, any(here), sizeof here), 0);
    EXPECT_EQ(rlisten(fd, backlog), 0);
    return fd;
  }

  int connect_to(const sockaddr_in& there) {
    const int fd = make();
    sockaddr_in name = there;
    EXPECT_EQ(rconnect(fd, any(name), sizeof name), 0) << strerror(errno);
    return fd;
  }

  // To a listener of rdma_cm that answers nothing.
  int start_connecting_to_silence() {
    rdma_cm_id* const listener = RDMACMTest::make_listener();
    const int fd = make(SOCK_STREAM | SOCK_NONBLOCK);
    silent_ = address(own_address(), port_of(listener));
    EXPECT_EQ(connect_error(fd, silent_), EINPROGRESS);
    return fd;
  }

  static int connect_error(int fd, sockaddr_in there) {
    return rconnect(fd, any(there), sizeof there) == 0 ? 0 : errno;
  }

  static int peer_name_error(int fd) {
    sockaddr_in name{};
    socklen_t size = sizeof name;
    return rgetpeername(fd, any(name), &size) == 0 ? 0 : errno;
  }

  static void expect_end(int fd) {
    char byte = 0;
    EXPECT_EQ(rrecv(fd, &byte, 1, 0), 0) << strerror(errno);
  }

  static constexpr int kShort_ms = 200;
  sockaddr_in silent_{};
};

TEST_F(RSocketConnectingTest, OneThreadConnectsToItsOwnListener) {
  const int listener = make_listener();
  const int client = connect_to(name_of(listener));
  send_all(client, "early");
  const int server = accept_from(listener);
  EXPECT_EQ(receive_all(server, 5), "early");
  send_all(server, "back");
  EXPECT_EQ(receive_all(client, 4), "back");
}

TEST_F(RSocketConnectingTest, AcceptAfterThePeerHasClosedFindsItsBytes) {
  const int listener = make_listener();
  const int client = connect_to(name_of(listener));
  send_all(client, "last words");
  close(client);
  const int server = accept_from(listener);
  EXPECT_EQ(receive_all(server, 10), "last words");
  expect_end(server);
}

TEST_F(RSocketConnectingTest, HalfClosedBeforeAccept) {
  const int listener = make_listener();
  const int client = connect_to(name_of(listener));
  send_all(client, "request");
  ASSERT_EQ(rshutdown(client, SHUT_WR), 0);
  const int server = accept_from(listener);
  EXPECT_EQ(receive_all(server, 7), "request");
  expect_end(server);
  send_all(server, "response");
  EXPECT_EQ(receive_all(client, 8), "response");
}

// The client makes no call after rconnect(): its side is completed for it.
TEST_F(RSocketConnectingTest, ANonblockingConnectCompletesByItself) {
  const int listener = make_listener();
  const int client = start_connecting(listener);
  const int server = accept_from(listener);
  send_all(server, "hello");
  EXPECT_EQ(receive_all(client, 5), "hello");
  EXPECT_EQ(get(client, SOL_SOCKET, SO_ERROR), 0);
}

TEST_F(RSocketConnectingTest, AFullBacklogMakesConnectWait) {
  const int listener = make_listener_of(1);
  connect_to(name_of(listener));
  const int second = start_connecting(listener);
  EXPECT_EQ(poll_one(second, POLLOUT, kShort_ms), 0);
  accept_from(listener);
  EXPECT_EQ(poll_one(second, POLLOUT), POLLOUT);
  const int third = start_connecting(listener);
  EXPECT_EQ(poll_one(third, POLLOUT, kShort_ms), 0);
  ASSERT_EQ(rlisten(listener, 2), 0);
  EXPECT_EQ(poll_one(third, POLLOUT), POLLOUT);
}

TEST_F(RSocketConnectingTest, ClosingTheListenerEndsWhatItHasNotAccepted) {
  const int listener = make_listener_of(1);
  sockaddr_in there = name_of(listener);
  const int queued = connect_to(there);
  const int waiting = start_connecting(listener);
  EXPECT_EQ(poll_one(waiting, POLLOUT, kShort_ms), 0);
  close(listener);
  const int next = make();
  EXPECT_EQ(rbind(next, any(there), sizeof there), 0) << "the port is free at once";
  expect_end(queued);
  EXPECT_NE(poll_one(waiting, POLLOUT) & POLLERR, 0);
  EXPECT_EQ(get(waiting, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
}

TEST_F(RSocketConnectingTest, ShutdownOfAListenerEndsAccept) {
  const int listener = make_listener();
  const sockaddr_in there = name_of(listener);
  std::thread accepting([&] {
    EXPECT_EQ(raccept(listener, nullptr, nullptr), -1);
    EXPECT_EQ(errno, EINVAL);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it waits, or will not begin to
  EXPECT_EQ(rshutdown(listener, SHUT_RD), 0);
  accepting.join();
  const int late = make();
  EXPECT_EQ(connect_error(late, there), ECONNREFUSED);
}

TEST_F(RSocketConnectingTest, AConnectUnderWaySaysSo) {
  const int client = start_connecting_to_silence();
  EXPECT_EQ(connect_error(client, silent_), EALREADY);
  char byte = 0;
  EXPECT_EQ(rrecv(client, &byte, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(rsend(client, &byte, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(poll_one(client, POLLIN | POLLOUT, 0), 0);
  EXPECT_EQ(get(client, SOL_SOCKET, SO_ERROR), 0);
}

// As TCP: the next connect() says how the last one ended, where SO_ERROR has not, and another
// tries.
TEST_F(RSocketConnectingTest, ARefusalIsToldOnce) {
  const int listener = make_listener();
  const sockaddr_in there = name_of(listener);
  close(listener);
  const int client = make(SOCK_STREAM | SOCK_NONBLOCK);
  EXPECT_EQ(connect_error(client, there), EINPROGRESS);
  EXPECT_NE(poll_one(client, POLLOUT) & POLLERR, 0);
  EXPECT_EQ(connect_error(client, there), ECONNREFUSED);
  EXPECT_EQ(get(client, SOL_SOCKET, SO_ERROR), 0);
  EXPECT_EQ(connect_error(client, there), EINPROGRESS);
}

TEST_F(RSocketConnectingTest, TheNamesOfEachStage) {
  const int listener = make_listener();
  EXPECT_EQ(peer_name_error(listener), ENOTCONN);
  const int connecting = start_connecting_to_silence();
  EXPECT_EQ(peer_name_error(connecting), ENOTCONN);
  EXPECT_NE(name_of(connecting).sin_port, 0);
  const int client = connect_to(name_of(listener));
  EXPECT_EQ(peer_name_error(client), 0);
  const int server = accept_from(listener);
  EXPECT_EQ(peer_name_error(server), 0);
  EXPECT_EQ(name_of(server).sin_port, name_of(listener).sin_port);
  close(client);
  expect_end(server);
  EXPECT_EQ(peer_name_error(server), 0) << "as TCP in CLOSE_WAIT";
}

// The thread that accepts does not survive fork(): the child gets one of its own.
TEST_F(RSocketConnectingTest, AChildOfForkAcceptsToo) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer lets no child of a program with threads start threads";
#endif
  const int listener = make_listener();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    const int own = make_listener();
    const int client = connect_to(name_of(own));
    const bool is_whole = rsend(client, "x", 1, 0) == 1 && raccept(own, nullptr, nullptr) >= 0;
    ::_exit(is_whole && !HasFailure() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  connect_to(name_of(listener));
  accept_from(listener);
}

// As servers do that fork: a child closes what it inherits and does not use.
TEST_F(RSocketConnectingTest, AChildOfForkClosesItsCopyOnly) {
  const int listener = make_listener();
  const int client = connect_to(name_of(listener));
  const int server = accept_from(listener);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    for (const int fd : {listener, client, server}) rclose(fd);
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  char byte = 0;
  EXPECT_EQ(rsend(client, "x", 1, 0), 1);
  EXPECT_EQ(rrecv(server, &byte, 1, 0), 1);
  EXPECT_EQ(byte, 'x');
  connect_to(name_of(listener));
  accept_from(listener);
}

// As of accept(2): the lowest that is free, while the connection may have come before.
TEST_F(RSocketConnectingTest, AnAcceptedOneIsNumberedWhenItIsAccepted) {
  const int listener = make_listener();
  const int client = connect_to(name_of(listener));
  EXPECT_EQ(peer_name_error(client), 0) << "the service has accepted it";
  const int earlier = ::dup(STDIN_FILENO);
  const int server = accept_from(listener);
  EXPECT_GT(server, earlier);
  EXPECT_EQ(::fcntl(server, F_GETFD), FD_CLOEXEC);
  ::close(earlier);
}

}  // namespace
}  // namespace verbena::test
