#include "host/doctor/encryption.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "host/encryption/key_agent.h"
#include "host/network/socket_address.h"
#include "host/os/kernel_socket.h"

namespace verbena::host {
namespace {

constexpr int kConnectPatienceMs = 500;

std::string name_of(const EncryptionSettings& settings, const IssuedAssociation& issued) {
  const std::string cipher =
      issued.key.version == PSPVersion::kAES128GCM ? "AES-GCM-128" : "AES-GCM-256";
  return "PSP with " + cipher + " on UDP " + std::to_string(settings.port) +
         ", keys by TLS 1.3 with " + (settings.uses_psk() ? "a pre-shared key" : "certificates") +
         ", renewed within " + std::to_string(issued.renew_after.ns() / 1'000'000'000) + " s";
}

}  // namespace

Expected<std::string> agree_with_peer(const EncryptionSettings& settings, const LocalAddress& local,
                                      const GID& peer) {
  const std::vector<GID> own = local.all();
  const auto source =
      std::ranges::find_if(own, [&](const GID& gid) { return gid.is_ipv4() == peer.is_ipv4(); });
  if (source == own.end())
    return failure(EAFNOSUPPORT, local.device_name + " has no address of the peer's family");
  const Expected<const OpenSSL*> ssl = OpenSSL::load();
  if (!ssl) return tl::unexpected(ssl.error());
  const auto credentials = TLSCredentials::load(**ssl, settings);
  if (!credentials) return tl::unexpected(credentials.error());
  const Expected<IssuedAssociation> issued = agree_once(
      **ssl, **credentials, settings, {.sender = *source, .receiver = peer}, local.interface_index);
  if (!issued) return tl::unexpected(issued.error());
  return name_of(settings, *issued);
}

bool listens_for_handshakes(const GID& peer, u16 port, u32 interface_index) {
  const Descriptor socket =
      open_kernel_socket(family_of(peer), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
  const SocketAddress to(peer, port, interface_index);
  if (::connect(socket.get(), to.data(), to.size()) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd waiting{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  if (::poll(&waiting, 1, kConnectPatienceMs) != 1) return false;
  int error = 0;
  socklen_t size = sizeof(error);
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

}  // namespace verbena::host
