#include "host/links/fabric/fabric_protocol.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/bytes.h"
#include "host/os/kernel_socket.h"
#include "host/os/socket_option.h"

namespace verbena::host {
namespace {

constexpr int kPatienceMs = 10'000;
constexpr int kWaiting = 64;           // processes that connect at once
constexpr int kBufferBytes = 4 << 20;  // as far as the kernel grants it

// An abstract name, which belongs to the network namespace; or a file in the folder that
// kFabricFolderVariable names, which processes of several network namespaces share.
struct Name {
  sockaddr_un address{};
  socklen_t size = 0;

  explicit Name(const std::string& name) {
    address.sun_family = AF_UNIX;
    std::string text = "verbena-fabric-" + std::to_string(::geteuid()) + "-" + name;
    const char* const folder = std::getenv(kFabricFolderVariable);
    folder != nullptr&&* folder != 0 ? set_file(folder + ("/" + text)) : set_abstract(text);
  }
  [[nodiscard]] bool is_file() const { return address.sun_path[0] != 0; }
  // The file of a server that has ended without removing it.
  [[nodiscard]] bool is_left_over() const {
    const Descriptor probe = open_kernel_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC);
    return is_file() && probe.is_open() && ::connect(probe.get(), data(), size) != 0 &&
           errno == ECONNREFUSED;
  }

  void set_file(const std::string& path) {  // one that is too long is no name: EINVAL
    if (path.size() >= sizeof(address.sun_path)) return;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    size = sizeof(address);
  }
  void set_abstract(std::string text) {
    text.resize(std::min(text.size(), sizeof(address.sun_path) - 1));
    std::memcpy(address.sun_path + 1, text.data(), text.size());  // a 0 first: abstract
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Expected<Descriptor> open_socket() {
  Descriptor socket = open_kernel_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (!socket.is_open())
    return failure(errno, std::string("cannot open a Unix socket: ") + std::strerror(errno));
  (void)set_option(socket.get(), SOL_SOCKET, SO_SNDBUF, kBufferBytes);
  return socket;
}

}  // namespace

GID gid_of(const FabricPortAttributes& port) {
  GID gid;
  store_be64(gid.bytes.data(), port.gid_prefix);
  store_be64(gid.bytes.data() + 8, port.port_guid);
  return gid;
}

std::string FabricPlace::text() const {
  return name + " " + std::to_string(host) + " " + std::to_string(claim);
}

std::optional<FabricPlace> FabricPlace::parse(const std::string& text) {
  FabricPlace place;
  char name[64];
  unsigned long long claim = 0;
  if (std::sscanf(text.c_str(), "%63s %u %llu", name, &place.host, &claim) != 3)
    return std::nullopt;
  place.name = name;
  place.claim = claim;
  return place;
}

Expected<Descriptor> connect_to_fabric(const std::string& name) {
  Expected<Descriptor> socket = open_socket();
  if (!socket) return socket;
  const Name address(name);
  if (::connect(socket->get(), address.data(), address.size) != 0)
    return failure(errno == ENOENT ? ECONNREFUSED : errno,
                   std::string("cannot reach the fabric's server: ") + std::strerror(errno));
  if (!is_own_user(socket->get())) return failure(EPERM, "the fabric's server is another user's");
  return socket;
}

Expected<Descriptor> listen_as_fabric(const std::string& name) {
  Expected<Descriptor> socket = open_socket();
  if (!socket) return socket;
  const Name address(name);
  if (address.is_left_over()) (void)::unlink(address.address.sun_path);
  if (::bind(socket->get(), address.data(), address.size) != 0 ||
      ::listen(socket->get(), kWaiting) != 0)
    return failure(errno, std::string("cannot listen: ") + std::strerror(errno));
  return socket;
}

bool is_own_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

int send_fabric_message(int socket, FabricKind kind, std::span<const u8> fixed,
                        std::span<const u8> rest) {
  const auto part = [](const void* data, std::size_t size) {
    return iovec{.iov_base = const_cast<void*>(data), .iov_len = size};
  };
  std::array<iovec, 3> parts = {part(&kind, sizeof(kind)), part(fixed.data(), fixed.size()),
                                part(rest.data(), rest.size())};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  for (;;) {
    if (::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return 0;
    if (errno != EINTR) return errno;
  }
}

std::optional<FabricMessage> FabricMessage::of(std::span<const u8> bytes) {
  FabricMessage message;
  if (bytes.size() < sizeof(message.kind)) return std::nullopt;
  std::memcpy(&message.kind, bytes.data(), sizeof(message.kind));
  message.body = bytes.subspan(sizeof(message.kind));
  return message;
}

Expected<std::size_t> await_fabric_message(int socket, std::span<u8> buffer) {
  for (;;) {
    const ssize_t size = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size >= 0) return static_cast<std::size_t>(size);
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return std::size_t{0};
    pollfd waiting{.fd = socket, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, kPatienceMs) == 0)
      return failure(ETIMEDOUT, "the fabric's server does not answer");
  }
}

Error error_of(const FabricRefused& refused) {
  return {refused.error, std::string(refused.message.data())};
}

}  // namespace verbena::host
