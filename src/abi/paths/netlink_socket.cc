// socket(2) of NETLINK_RDMA, and what programs do with it: bind, getsockname, setsockopt, send,
// sendto, sendmsg, recvfrom, recvmsg. There is no kernel behind such a socket, but RDMANetlink: it
// is a Unix datagram socket that is connected to itself. A request is answered within the call that
// sends it, and the answers wait in the socket as the kernel's would.
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "abi/paths/next.h"
#include "abi/paths/rdma_netlink.h"
#include "abi/paths/redirected.h"

namespace verbena::abi::paths {
namespace {

using MakeSocket = int(int, int, int);
using BindSocket = int(int, const sockaddr*, socklen_t);
using NameOfSocket = int(int, sockaddr*, socklen_t*);
using SetOption = int(int, int, int, const void*, socklen_t);
using SendBytes = ssize_t(int, const void*, std::size_t, int);
using SendTo = ssize_t(int, const void*, std::size_t, int, const sockaddr*, socklen_t);
using SendMessage = ssize_t(int, const msghdr*, int);
using ReceiveFrom = ssize_t(int, void*, std::size_t, int, sockaddr*, socklen_t*);
using CheckedReceiveFrom = ssize_t(int, void*, std::size_t, std::size_t, int, sockaddr*,
                                   socklen_t*);
using ReceiveMessage = ssize_t(int, msghdr*, int);

constinit Next<MakeSocket> next_socket{"socket"};
constinit Next<BindSocket> next_bind{"bind"};
constinit Next<NameOfSocket> next_getsockname{"getsockname"};
constinit Next<SetOption> next_setsockopt{"setsockopt"};
constinit Next<SendBytes> next_send{"send"};
constinit Next<SendTo> next_sendto{"sendto"};
constinit Next<SendMessage> next_sendmsg{"sendmsg"};
constinit Next<ReceiveFrom> next_recvfrom{"recvfrom"};
constinit Next<CheckedReceiveFrom> next_recvfrom_chk{"__recvfrom_chk"};
constinit Next<ReceiveMessage> next_recvmsg{"recvmsg"};

[[gnu::constructor]] void find_socket_functions() {
  next_socket.find();
  next_bind.find();
  next_getsockname.find();
  next_setsockopt.find();
  next_send.find();
  next_sendto.find();
  next_sendmsg.find();
  next_recvfrom.find();
  next_recvfrom_chk.find();
  next_recvmsg.find();
}

constexpr std::string_view kOwnPrefix = "verbena-rdma-netlink-";
constexpr int kAnswerRoom = 1 << 20;  // bytes; the kernel grants what net.core.wmem_max lets it
constexpr std::size_t kMaxRequest = 4096;

std::atomic<bool> any_netlink{false};  // this process has made one: other sockets cost no call

// Processes of different PID namespaces may have the same number: a name may be taken.
bool bind_to_itself(int fd) {
  static std::atomic<unsigned> count{0};
  for (int tries = 0; tries < 64; ++tries) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    char* const text = name.sun_path + 1;
    std::memcpy(text, kOwnPrefix.data(), kOwnPrefix.size());
    char* end = text + kOwnPrefix.size();
    end = std::to_chars(end, end + 12, ::getpid()).ptr;
    *end++ = '-';
    end = std::to_chars(end, end + 12, count++).ptr;
    const auto size = static_cast<socklen_t>(end - reinterpret_cast<const char*>(&name));
    const auto* const address = reinterpret_cast<const sockaddr*>(&name);
    if (next_bind(fd, address, size) == 0) return ::connect(fd, address, size) == 0;
    if (errno != EADDRINUSE) return false;
  }
  return false;
}

int make_netlink_socket(int type) {
  constexpr int kFlags = SOCK_CLOEXEC | SOCK_NONBLOCK;
  const int fd = next_socket(AF_UNIX, SOCK_DGRAM | (type & kFlags), 0);
  if (fd < 0) return -1;
  if (bind_to_itself(fd)) {
    (void)next_setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kAnswerRoom, socklen_t{sizeof(kAnswerRoom)});
    any_netlink = true;
    return fd;
  }
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

bool is_own_netlink(int fd) {
  if (!any_netlink.load(std::memory_order_relaxed)) return false;
  const int before = errno;
  sockaddr_un name{};
  socklen_t size = sizeof(name);
  const bool is_own = next_getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) == 0 &&
                      name.sun_family == AF_UNIX &&
                      size > offsetof(sockaddr_un, sun_path) + kOwnPrefix.size() &&
                      std::string_view(name.sun_path + 1, kOwnPrefix.size()) == kOwnPrefix;
  errno = before;
  return is_own;
}

sockaddr_nl netlink_name(u32 port) {
  sockaddr_nl name{};
  name.nl_family = AF_NETLINK;
  name.nl_pid = port;
  return name;
}
// As the kernel's choice for a process's first socket. The address that a program binds to is
// ignored.
u32 own_port() { return static_cast<u32>(::getpid()); }

void give_netlink_name(u32 port, void* to, socklen_t* length) {
  if (to == nullptr || length == nullptr) return;
  const sockaddr_nl name = netlink_name(port);
  std::memcpy(to, &name, std::min<std::size_t>(*length, sizeof(name)));
  *length = sizeof(name);
}

ssize_t take_request(int fd, const void* bytes, std::size_t size) {
  if (bytes == nullptr) {
    errno = EFAULT;
    return -1;
  }
  const int before = errno;
  const auto send = [](void* requester, std::span<const u8> datagram) {
    return next_send(*static_cast<int*>(requester), datagram.data(), datagram.size(),
                     MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
  };
  RDMANetlink("", own_port(), send, &fd).answer({static_cast<const u8*>(bytes), size});
  errno = before;
  return static_cast<ssize_t>(size);
}

ssize_t take_request(int fd, const msghdr& message) {
  alignas(nlmsghdr) char joined[kMaxRequest];
  std::size_t size = 0;
  for (std::size_t i = 0; i < message.msg_iovlen; ++i) {
    const iovec& part = message.msg_iov[i];
    if (part.iov_len > sizeof(joined) - size) {
      errno = EMSGSIZE;
      return -1;
    }
    std::memcpy(joined + size, part.iov_base, part.iov_len);
    size += part.iov_len;
  }
  return take_request(fd, joined, size);
}

}  // namespace
}  // namespace verbena::abi::paths

using namespace verbena::abi::paths;

extern "C" {

int socket(int family, int type, int protocol) noexcept {
  if (family == AF_NETLINK && protocol == NETLINK_RDMA && !tree().is_empty())
    return make_netlink_socket(type);
  return next_socket(family, type, protocol);
}

int bind(int fd, const sockaddr* name, socklen_t length) noexcept {
  return is_own_netlink(fd) ? 0 : next_bind(fd, name, length);
}

int getsockname(int fd, sockaddr* name, socklen_t* length) noexcept {
  if (!is_own_netlink(fd)) return next_getsockname(fd, name, length);
  give_netlink_name(own_port(), name, length);
  return 0;
}

int setsockopt(int fd, int level, int name, const void* value, socklen_t length) noexcept {
  if (level == SOL_NETLINK && is_own_netlink(fd)) return 0;
  return next_setsockopt(fd, level, name, value, length);
}

ssize_t send(int fd, const void* bytes, std::size_t size, int flags) {
  return is_own_netlink(fd) ? take_request(fd, bytes, size) : next_send(fd, bytes, size, flags);
}

ssize_t sendto(int fd, const void* bytes, std::size_t size, int flags, const sockaddr* to,
               socklen_t length) {
  return is_own_netlink(fd) ? take_request(fd, bytes, size)
                            : next_sendto(fd, bytes, size, flags, to, length);
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (message == nullptr || !is_own_netlink(fd)) return next_sendmsg(fd, message, flags);
  return take_request(fd, *message);
}

ssize_t recvfrom(int fd, void* bytes, std::size_t size, int flags, sockaddr* from,
                 socklen_t* length) {
  if (from == nullptr || !is_own_netlink(fd))
    return next_recvfrom(fd, bytes, size, flags, from, length);
  const ssize_t received = next_recvfrom(fd, bytes, size, flags, nullptr, nullptr);
  if (received >= 0) give_netlink_name(0, from, length);  // the kernel's
  return received;
}

// Programs that are built with _FORTIFY_SOURCE call this function.
ssize_t __recvfrom_chk(int fd, void* bytes, std::size_t size, std::size_t room, int flags,
                       sockaddr* from, socklen_t* length) {
  if (from == nullptr || !is_own_netlink(fd))
    return next_recvfrom_chk(fd, bytes, size, room, flags, from, length);
  const ssize_t received = next_recvfrom_chk(fd, bytes, size, room, flags, nullptr, nullptr);
  if (received >= 0) give_netlink_name(0, from, length);  // the kernel's
  return received;
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  if (message == nullptr || message->msg_name == nullptr || !is_own_netlink(fd))
    return next_recvmsg(fd, message, flags);
  void* const name = message->msg_name;
  socklen_t length = message->msg_namelen;
  message->msg_name = nullptr;
  const ssize_t received = next_recvmsg(fd, message, flags);
  message->msg_name = name;
  if (received >= 0) give_netlink_name(0, name, &length);
  message->msg_namelen = length;
  return received;
}

}  // extern "C"
