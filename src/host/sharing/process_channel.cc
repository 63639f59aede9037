#include "host/sharing/process_channel.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "host/os/clock.h"
#include "host/os/kernel_socket.h"
#include "host/os/socket_option.h"
#include "host/sharing/qpn_slot.h"

namespace verbena::host {
namespace {

constexpr std::size_t kBufferSize = (1 << 16) + 256;
constexpr u32 kChannelMagic = 0x56425631;  // changes with the layout of Header

struct Name {
  sockaddr_un address{};
  socklen_t size = 0;

  Name(uid_t user, u32 slot) {
    address.sun_family = AF_UNIX;
    const std::string text = "verbena-" + std::to_string(user) + "-" + std::to_string(slot);
    std::memcpy(address.sun_path + 1, text.data(), text.size());  // a 0 first: abstract
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Descriptor open_socket() {
  return open_kernel_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
}

bool can_connect(const Descriptor& socket, const Name& name) {
  return ::connect(socket.get(), name.data(), name.size) == 0;
}

// Anybody on this host can send to an abstract name: only our own user is listened to.
bool is_from(uid_t user, msghdr& message) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(c), sizeof(sender));
    return sender.uid == user;
  }
  return false;
}

}  // namespace

struct ProcessChannel::Header {
  enum class Kind : u32 { kFrame = 1, kAnswer = 2 };
  u32 magic = kChannelMagic;
  Kind kind = Kind::kFrame;
  GID source{}, destination{};
  u16 udp_source_port = 0, identification = 0;
  u8 traffic_class = 0, hop_limit = 0;
  u16 authenticated = 0;  // 1: it has been decrypted
  ProbeAnswer answer{};
};

ProcessChannel::ProcessChannel(Descriptor socket, u32 slot)
    : socket_(std::move(socket)),
      user_(::geteuid()),
      slot_(slot),
      buffer_(std::make_unique_for_overwrite<u8[]>(kBufferSize)) {}

Expected<ProcessChannel> ProcessChannel::claim(u64 random) {
  Descriptor socket = open_socket();
  if (!socket.is_open() || !set_option(socket.get(), SOL_SOCKET, SO_PASSCRED, 1))
    return failure(errno, std::string("cannot open a Unix socket: ") + std::strerror(errno));
  constexpr u32 kSlots = kLastSlot - kFirstSlot + 1;
  for (u32 i = 0; i < kSlots; ++i) {
    const u32 slot = kFirstSlot + static_cast<u32>((random + i) % kSlots);
    const Name name(::geteuid(), slot);
    if (::bind(socket.get(), name.data(), name.size) == 0)
      return ProcessChannel(std::move(socket), slot);
    if (errno != EADDRINUSE)
      return failure(errno, std::string("cannot bind a Unix socket: ") + std::strerror(errno));
  }
  return failure(EUSERS, "all " + std::to_string(kSlots) +
                             " places for Verbena devices on this host are taken; end some "
                             "programs that use one");
}

bool ProcessChannel::is_alive(u32 slot) {
  return can_connect(open_socket(), Name(::geteuid(), slot));
}

u32 ProcessChannel::count_alive() {
  const Descriptor socket = open_socket();
  const uid_t user = ::geteuid();
  u32 count = 0;
  for (u32 slot = kFirstSlot; slot <= kLastSlot; ++slot)
    if (can_connect(socket, Name(user, slot))) ++count;
  return count;
}

bool ProcessChannel::send(u32 slot, const IngressFrame& frame) {
  Header header{};
  header.source = frame.source;
  header.destination = frame.destination;
  header.udp_source_port = frame.udp_source_port;
  header.identification = frame.identification;
  header.traffic_class = frame.traffic_class;
  header.hop_limit = frame.hop_limit;
  header.authenticated = frame.authenticated ? 1 : 0;
  return send(slot, header, frame.transport);
}

bool ProcessChannel::send(u32 slot, const IngressFrame& frame, Time deadline) {
  bool sent = send(slot, frame);
  while (!sent && errno == EAGAIN && monotonic_now() < deadline) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    sent = send(slot, frame);
  }
  return sent;
}

bool ProcessChannel::send(u32 slot, const ProbeAnswer& answer) {
  Header header{};
  header.kind = Header::Kind::kAnswer;
  header.answer = answer;
  return send(slot, header, {});
}

bool ProcessChannel::send(u32 slot, const Header& header, std::span<const u8> body) {
  Name name(user_, slot);
  std::array<iovec, 2> iovs{{{.iov_base = const_cast<Header*>(&header), .iov_len = sizeof(header)},
                             {.iov_base = const_cast<u8*>(body.data()), .iov_len = body.size()}}};
  msghdr message{};
  message.msg_name = &name.address;
  message.msg_namelen = name.size;
  message.msg_iov = iovs.data();
  message.msg_iovlen = iovs.size();
  return ::sendmsg(fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

ProcessChannel::Received ProcessChannel::receive() {
  if (!socket_.is_open()) return Received::kNothing;
  alignas(cmsghdr) std::array<u8, CMSG_SPACE(sizeof(ucred))> control;
  iovec iov{.iov_base = buffer_.get(), .iov_len = kBufferSize};
  msghdr message{};
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return Received::kNothing;
  if ((message.msg_flags & MSG_TRUNC) != 0 || !is_from(user_, message)) return Received::kIgnored;
  return decode({buffer_.get(), static_cast<std::size_t>(size)});
}

ProcessChannel::Received ProcessChannel::decode(std::span<const u8> message) {
  Header header{};
  if (message.size() < sizeof(header)) return Received::kIgnored;
  std::memcpy(&header, message.data(), sizeof(header));
  if (header.magic != kChannelMagic) return Received::kIgnored;
  if (header.kind == Header::Kind::kAnswer) {
    answer_ = header.answer;
    return Received::kAnswer;
  }
  frame_ = {.source = header.source,
            .destination = header.destination,
            .udp_source_port = header.udp_source_port,
            .traffic_class = header.traffic_class,
            .hop_limit = header.hop_limit,
            .identification_known = false,
            .identification = header.identification,
            .transport = message.subspan(sizeof(header)),
            .authenticated = header.authenticated == 1};
  return Received::kFrame;
}

ProcessWaker::ProcessWaker() : socket_(open_socket()), user_(::geteuid()) {}

void ProcessWaker::wake(u32 slot) {
  const Name name(user_, slot);
  (void)::sendto(socket_.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, name.data(), name.size);
}

}  // namespace verbena::host
