// sendmsg(2) and its like as the data path makes them: at once, or not at all. Not libc's: those
// are cancellation points, which costs two locked instructions, and a thread that is cancelled in
// ibv_poll_cq() would leave the adapter locked. On failure negative, and errno says why.
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <span>

namespace verbena::host {

// The kernel reads less if the message is one piece that goes to the socket's connected peer.
[[nodiscard]] inline long send_message(int fd, const msghdr& message) {
  if (message.msg_iovlen != 1 || message.msg_name != nullptr || message.msg_control != nullptr)
    return ::syscall(SYS_sendmsg, fd, &message, MSG_DONTWAIT);
  const iovec& piece = *message.msg_iov;
  return ::syscall(SYS_sendto, fd, piece.iov_base, piece.iov_len, MSG_DONTWAIT, nullptr, 0);
}
[[nodiscard]] inline long send_messages(int fd, std::span<mmsghdr> messages) {
  return ::syscall(SYS_sendmmsg, fd, messages.data(), messages.size(), MSG_DONTWAIT);
}
[[nodiscard]] inline long receive_message(int fd, msghdr& message) {
  return ::syscall(SYS_recvmsg, fd, &message, MSG_DONTWAIT);
}
[[nodiscard]] inline long receive_messages(int fd, std::span<mmsghdr> messages) {
  return ::syscall(SYS_recvmmsg, fd, messages.data(), messages.size(), MSG_DONTWAIT, nullptr);
}

// The same on a stream. One piece takes the shorter call. A peer that is gone raises no SIGPIPE.
[[nodiscard]] inline long send_pieces(int fd, std::span<iovec> from) {
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  if (from.size() == 1)
    return ::syscall(SYS_sendto, fd, from[0].iov_base, from[0].iov_len, kFlags, nullptr, 0);
  msghdr message{};
  message.msg_iov = from.data();
  message.msg_iovlen = from.size();
  return ::syscall(SYS_sendmsg, fd, &message, kFlags);
}
[[nodiscard]] inline long receive_pieces(int fd, std::span<iovec> into) {
  if (into.size() == 1)
    return ::syscall(SYS_recvfrom, fd, into[0].iov_base, into[0].iov_len, MSG_DONTWAIT, nullptr,
                     nullptr);
  msghdr message{};
  message.msg_iov = into.data();
  message.msg_iovlen = into.size();
  return receive_message(fd, message);
}

// Looks at an epoll(7) without waiting. Returns the number of events.
[[nodiscard]] inline long ready_events(int epoll, std::span<epoll_event> out) {
  return ::syscall(SYS_epoll_pwait, epoll, out.data(), out.size(), 0, nullptr, 0);
}

// An eventfd(2).
inline void ring_event(int fd) {
  const unsigned long long one = 1;
  (void)::syscall(SYS_write, fd, &one, sizeof(one));
}
inline void clear_event(int fd) {
  unsigned long long count = 0;
  (void)::syscall(SYS_read, fd, &count, sizeof(count));
}

}  // namespace verbena::host
