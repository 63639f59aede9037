#include "host/nic/nic_stream_protocol.h"

#include <sys/socket.h>

#include <cstring>

namespace verbena::host {

std::optional<NICStreamRequest> NICStreamRequest::decode(std::span<const u8> message) {
  NICStreamRequest request;
  if (message.size() != sizeof(request)) return std::nullopt;
  std::memcpy(&request, message.data(), sizeof(request));
  if (request.version != kNICVersion) return std::nullopt;
  switch (request.call) {
    case NICStreamCall::kListen:
    case NICStreamCall::kConnect:
    case NICStreamCall::kClose: return request;
  }
  return std::nullopt;
}

long receive_with_descriptor(int socket, std::span<u8> message, Descriptor& out) {
  alignas(cmsghdr) std::array<u8, CMSG_SPACE(sizeof(int))> control{};
  iovec iov{.iov_base = message.data(), .iov_len = message.size()};
  msghdr header{};
  header.msg_iov = &iov;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const long size = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  const cmsghdr* const c = size > 0 ? CMSG_FIRSTHDR(&header) : nullptr;
  if (c == nullptr || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
      c->cmsg_len != CMSG_LEN(sizeof(int)))
    return size;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(c), sizeof(fd));
  out = Descriptor(fd);
  return size;
}

Expected<NICStreamAttachment> attach_streams_to_nic(const std::string& path,
                                                    const std::string& function) {
  NICAttach request{.request = NICRequest::kAttachStreams};
  put_text(request.function, function);
  Expected<Descriptor> socket = connect_to_nic(path, request);
  if (!socket) return tl::unexpected(socket.error());
  const Expected<NICAttached> attached = await_attached(path, *socket);
  if (!attached) return tl::unexpected(attached.error());
  return NICStreamAttachment{*attached, std::move(*socket)};
}

}  // namespace verbena::host
