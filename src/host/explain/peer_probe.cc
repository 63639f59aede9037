#include "host/explain/peer_probe.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "host/encryption/encryption_settings.h"
#include "host/network/socket_address.h"
#include "host/os/descriptor.h"
#include "host/sharing/process_channel.h"
#include "host/sharing/qpn_slot.h"
#include "wire/roce/v2_packet.h"

namespace verbena::host {
namespace {

using explain::PeerFacts;

Descriptor datagram_socket(const GID& address) {
  return Descriptor(::socket(family_of(address), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

bool is_of_this_host(const GID& address) {
  const Descriptor socket = datagram_socket(address);
  const SocketAddress any_port(address, 0, 0);
  return ::bind(socket.get(), any_port.data(), any_port.size()) == 0;
}

void note(int error, PeerFacts& out) {
  switch (error) {
    case ECONNREFUSED: out.port_refused = true; return;
    case EHOSTUNREACH:
    case ENETUNREACH: out.host_unreachable = true; return;
    default: return;  // says nothing about the peer
  }
}

std::optional<u32> path_mtu(const Descriptor& socket, const GID& to) {
  int mtu = 0;
  socklen_t size = sizeof(mtu);
  const bool known = to.is_ipv4()
                         ? ::getsockopt(socket.get(), IPPROTO_IP, IP_MTU, &mtu, &size) == 0
                         : ::getsockopt(socket.get(), IPPROTO_IPV6, IPV6_MTU, &mtu, &size) == 0;
  return known && mtu > 0 ? std::optional(static_cast<u32>(mtu)) : std::nullopt;
}

int error_after_sending(const Descriptor& socket) {
  if (::send(socket.get(), nullptr, 0, 0) < 0) return errno;
  pollfd waits{.fd = socket.get(), .events = 0, .revents = 0};  // POLLERR needs no asking
  (void)::poll(&waits, 1, static_cast<int>(kProbePatience.ns() / 1'000'000));
  int error = 0;
  socklen_t size = sizeof(error);
  (void)::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

void ask_kernel(const GID& to, bool shares_our_port, PeerFacts& out) {
  const Descriptor socket = datagram_socket(to);
  const auto encryption = encryption_settings_from_environment();
  const bool is_encrypted = encryption && *encryption;
  const SocketAddress port(to, is_encrypted ? (*encryption)->port : kRoCEv2Port, 0);
  if (::connect(socket.get(), port.data(), port.size()) != 0) return note(errno, out);
  out.path_mtu = path_mtu(socket, to);
  if (!shares_our_port) note(error_after_sending(socket), out);
}

}  // namespace

void probe_peer(const AddressVector& path, QPN peer, PeerFacts& out) {
  const bool shares_our_port = path.source == path.destination;
  if (is_of_this_host(path.destination)) {
    out.place = PeerFacts::Place::kThisHost;
    const bool alive =
        is_process_slot(slot_of(peer.value)) && ProcessChannel::is_alive(slot_of(peer.value));
    // Another user's processes are not seen; they cannot share our port.
    if (alive || shares_our_port) out.process_alive = alive;
  }
  ask_kernel(path.destination, shares_our_port, out);
}

}  // namespace verbena::host
