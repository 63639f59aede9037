#include "host/nic/nic_protocol.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "host/os/message_calls.h"

namespace verbena::host {
namespace {

constexpr int kNICPatienceMs = 5000;
constexpr std::size_t kNICDescriptors = 3;
constexpr std::size_t kRingsAtOnce = 64;  // of a doorbell that are cleared together

tl::unexpected<Error> nic_failure(const std::string& path, int error) {
  return failure(error, "verbena nic at " + path + ": " + std::strerror(error));
}

struct NICAnswer {
  std::string bytes;
  std::array<Descriptor, kNICDescriptors> descriptors;
};

void take_descriptors(msghdr& message, NICAnswer& out) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
      Descriptor owned(fd);
      if (i < out.descriptors.size()) out.descriptors[i] = std::move(owned);
    }
  }
}

Expected<NICAnswer> await_nic_answer(const std::string& path, const Descriptor& socket) {
  pollfd waiting{.fd = socket.get(), .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, kNICPatienceMs) != 1) return nic_failure(path, ETIMEDOUT);
  NICAnswer answer;
  answer.bytes.resize(std::max(sizeof(NICAttached), sizeof(NICStatusAnswer)));
  iovec iov{.iov_base = answer.bytes.data(), .iov_len = answer.bytes.size()};
  alignas(cmsghdr) std::array<u8, CMSG_SPACE(kNICDescriptors * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  if (size <= 0) return nic_failure(path, size == 0 ? ECONNRESET : errno);
  take_descriptors(message, answer);
  answer.bytes.resize(static_cast<std::size_t>(size));
  return answer;
}

Expected<NICAttached> attached_of(const std::string& path, const NICAnswer& answer) {
  NICAttached attached;
  if (answer.bytes.size() != sizeof(attached)) return nic_failure(path, EPROTO);
  std::memcpy(&attached, answer.bytes.data(), sizeof(attached));
  if (attached.version != kNICVersion) return nic_failure(path, EPROTO);
  if (attached.error != 0)
    return failure(attached.error, "verbena nic at " + path + ": " + text_of(attached.text));
  return attached;
}

Expected<std::string> status_text_of(const std::string& path, const NICAnswer& answer) {
  NICStatusAnswer status;
  if (answer.bytes.size() != sizeof(status)) return nic_failure(path, EPROTO);
  std::memcpy(&status, answer.bytes.data(), sizeof(status));
  if (status.version != kNICVersion) return nic_failure(path, EPROTO);
  if (status.error != 0) return nic_failure(path, status.error);
  const Descriptor& memory = answer.descriptors[0];
  struct stat file {};
  const bool has_text = ::fstat(memory.get(), &file) == 0 && status.text_bytes != 0 &&
                        status.text_bytes <= static_cast<u64>(file.st_size);
  if (!has_text) return nic_failure(path, EPROTO);  // to read beyond its end raises SIGBUS
  const Expected<Mapping> text = Mapping::of_file(
      memory.get(), 0, static_cast<std::size_t>(status.text_bytes), MapAccess::kRead);
  if (!text) return tl::unexpected(text.error());
  return std::string(reinterpret_cast<const char*>(text->data()), text->size());
}

bool send_group_request(const Descriptor& socket, NICRequest what, const GID& group) {
  const NICGroupRequest request{.request = what, .group = group};
  return ::send(socket.get(), &request, sizeof(request), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         sizeof(request);
}

bool write_all(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote <= 0) return false;
    done += static_cast<std::size_t>(wrote);
  }
  return true;
}

}  // namespace

std::string nic_from_environment() {
  const char* const path = std::getenv(kNICVariable);
  return path == nullptr ? "" : path;
}

Expected<Descriptor> connect_to_nic(const std::string& path, const NICAttach& request) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return nic_failure(path, ENAMETOOLONG);
  path.copy(address.sun_path, path.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.is_open() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return nic_failure(path, errno);
  if (::send(socket.get(), &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request))
    return nic_failure(path, errno);
  return socket;
}

Expected<NICAttachment> attach_to_nic(const std::string& path, u32 wanted_slot,
                                      const std::string& function) {
  NICAttach request{.request = NICRequest::kAttach, .wanted_slot = wanted_slot};
  put_text(request.function, function);
  Expected<Descriptor> socket = connect_to_nic(path, request);
  if (!socket) return tl::unexpected(socket.error());
  Expected<NICAnswer> answer = await_nic_answer(path, *socket);
  if (!answer) return tl::unexpected(answer.error());
  const Expected<NICAttached> attached = attached_of(path, *answer);
  if (!attached) return tl::unexpected(attached.error());
  auto& [memory, of_nic, of_program] = answer->descriptors;
  if (!of_program.is_open()) return nic_failure(path, EPROTO);
  Expected<Mapping> rings =
      Mapping::of_file(memory.get(), 0, sizeof(NICRings), MapAccess::kReadWrite);
  if (!rings) return tl::unexpected(rings.error());
  return NICAttachment{.attached = *attached,
                       .socket = std::move(*socket),
                       .doorbell_of_nic = std::move(of_nic),
                       .doorbell_of_program = std::move(of_program),
                       .rings = std::move(*rings)};
}

// An answer about another group comes late: its join has been given up.
Expected<void> join_group_on_nic(const std::string& path, const Descriptor& socket,
                                 const GID& group) {
  if (!send_group_request(socket, NICRequest::kJoin, group)) return nic_failure(path, errno);
  for (NICGroupAnswer told; told.group != group;) {
    const Expected<NICAnswer> answer = await_nic_answer(path, socket);
    if (!answer) return tl::unexpected(answer.error());
    if (answer->bytes.size() != sizeof(told)) return nic_failure(path, EPROTO);
    std::memcpy(&told, answer->bytes.data(), sizeof(told));
    if (told.group == group && told.error != 0)
      return failure(told.error, "verbena nic at " + path + ": " + text_of(told.text));
  }
  return {};
}

void leave_group_on_nic(const Descriptor& socket, const GID& group) {
  (void)send_group_request(socket, NICRequest::kLeave, group);
}

Expected<NICAttached> function_on_nic(const std::string& path, const std::string& function) {
  NICAttach request{.request = NICRequest::kDescribe};
  put_text(request.function, function);
  const Expected<Descriptor> socket = connect_to_nic(path, request);
  if (!socket) return tl::unexpected(socket.error());
  return await_attached(path, *socket);
}

Expected<NICAttached> await_attached(const std::string& path, const Descriptor& socket) {
  const Expected<NICAnswer> answer = await_nic_answer(path, socket);
  if (!answer) return tl::unexpected(answer.error());
  return attached_of(path, *answer);
}

Expected<std::string> address_on_nic(const std::string& path, const std::string& function) {
  const Expected<NICAttached> attached = function_on_nic(path, function);
  if (!attached) return tl::unexpected(attached.error());
  return text_of(attached->address);
}

Expected<std::string> status_of_nic(const std::string& path) {
  const Expected<Descriptor> socket = connect_to_nic(path, {.request = NICRequest::kStatus});
  if (!socket) return tl::unexpected(socket.error());
  const Expected<NICAnswer> answer = await_nic_answer(path, *socket);
  if (!answer) return tl::unexpected(answer.error());
  return status_text_of(path, *answer);
}

Expected<std::string> chosen_address_from_environment() {
  const char* const address = std::getenv("VERBENA_ADDRESS");
  return address_on_nic_or_host(address == nullptr ? "" : address);
}

Expected<std::string> address_on_nic_or_host(const std::string& choice) {
  const std::string nic = nic_from_environment();
  return nic.empty() ? choice : address_on_nic(nic, choice);
}

Descriptor sealed_text(const std::string& text) {
  Descriptor memory(::memfd_create("verbena-nic-status", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  if (!memory.is_open() || !write_all(memory.get(), text) ||
      ::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0)
    memory.reset();
  return memory;
}

bool send_with_descriptors(int socket, std::span<const u8> message,
                           std::span<const int> descriptors) {
  alignas(cmsghdr) std::array<u8, CMSG_SPACE(kNICDescriptors * sizeof(int))> control{};
  iovec iov{.iov_base = const_cast<u8*>(message.data()), .iov_len = message.size()};
  msghdr header{};
  header.msg_iov = &iov;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

void ring_doorbell(int fd) { ring_event(fd); }

void clear_doorbell(int fd) {
  std::array<u8, kRingsAtOnce * sizeof(u64)> rings;
  (void)::syscall(SYS_read, fd, rings.data(), rings.size());
}

}  // namespace verbena::host
