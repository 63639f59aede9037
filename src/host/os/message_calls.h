// sendmsg(2) and its like as the data path makes them: at once, or not at all. Not libc's: those
// are cancellation points, which costs two locked instructions, and a thread that is cancelled in
// ibv_poll_cq() would leave the adapter locked. On failure negative, and errno says why.
#pragma once

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

}  // namespace verbena::host
