#include "host/links/send_message.h"

#include <netinet/udp.h>

#include <cstring>

namespace verbena::host {
namespace {

u8 of_socket(const Burst& burst) {
  return burst.destination.is_multicast() ? kSocketHopLimit : burst.port->hop_limit();
}

// Than into segments of `wanted` bytes, if nothing is said; 0: not at all.
bool cuts_otherwise(const Burst& burst, u32 wanted) {
  const u32 own = burst.port->segment_size();
  return wanted != own && (wanted != 0 || burst.bytes > own);
}

}  // namespace

template <typename T>
void SendMessage::add_control(msghdr& out, int level, int type, T value) {
  cmsghdr header{};
  header.cmsg_len = CMSG_LEN(sizeof(T));
  header.cmsg_level = level;
  header.cmsg_type = type;
  u8* at = control_ + out.msg_controllen;
  std::memcpy(at, &header, sizeof(header));
  std::memcpy(at + CMSG_LEN(0), &value, sizeof(value));
  out.msg_controllen += CMSG_SPACE(sizeof(T));
}

void SendMessage::set(const Burst& burst, std::span<const iovec> iovs, u32 interface_index,
                      msghdr& out) {
  out = {};
  if (!burst.port->is_connected_to(burst.destination)) {
    address_ = SocketAddress(burst.destination, burst.port->destination_port(), interface_index);
    out.msg_name = address_.data();
    out.msg_namelen = address_.size();
  }
  out.msg_iov = const_cast<iovec*>(iovs.data());
  out.msg_iovlen = iovs.size();
  const bool ipv4 = burst.destination.is_ipv4();
  const int level = ipv4 ? IPPROTO_IP : IPPROTO_IPV6;
  if (const u32 size = burst.segments > 1 ? burst.segment_size : 0; cuts_otherwise(burst, size))
    add_control(out, SOL_UDP, UDP_SEGMENT, static_cast<u16>(size));
  if (burst.traffic_class != 0)
    add_control(out, level, ipv4 ? IP_TOS : IPV6_TCLASS, int{burst.traffic_class});
  if (const u8 hop_limit = hop_limit_of(burst); hop_limit != of_socket(burst))
    add_control(out, level, ipv4 ? IP_TTL : IPV6_HOPLIMIT, int{hop_limit});
  if (out.msg_controllen != 0) out.msg_control = control_;
}

}  // namespace verbena::host
