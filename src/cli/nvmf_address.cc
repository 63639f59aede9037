#include "cli/nvmf_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "application/address.h"

namespace verbena::cli {
namespace {

constexpr u16 kAnyPort = 9;  // nothing is sent

bool is_loopback(const GID& address) {
  if (address.is_ipv4()) return address.ipv4() >> 24 == 127;
  return address == GID::parse("::1");
}

// Returns the address from which the kernel sends to `peer`, or nullopt if there is no route. To
// 127.0.0.2 the kernel would send from 127.0.0.1, but the device that has the peer's address
// reaches it too.
std::optional<GID> source_towards(const GID& peer) {
  if (is_loopback(peer)) return peer;
  const bool is_ipv4 = peer.is_ipv4();
  const int fd = socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  sockaddr_in in4{};
  in4.sin_family = AF_INET;
  in4.sin_port = htons(kAnyPort);
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(kAnyPort);
  if (is_ipv4)
    in4.sin_addr.s_addr = htonl(peer.ipv4());
  else
    std::memcpy(&in6.sin6_addr, peer.bytes.data(), peer.bytes.size());
  auto* const address =
      is_ipv4 ? reinterpret_cast<sockaddr*>(&in4) : reinterpret_cast<sockaddr*>(&in6);
  socklen_t length = is_ipv4 ? sizeof in4 : sizeof in6;
  const bool is_known = connect(fd, address, length) == 0 && getsockname(fd, address, &length) == 0;
  close(fd);
  if (!is_known) return std::nullopt;
  if (is_ipv4) return GID::from_ipv4(ntohl(in4.sin_addr.s_addr));
  GID source;
  std::memcpy(source.bytes.data(), &in6.sin6_addr, source.bytes.size());
  return source;
}

std::optional<GID> ip_of(std::string_view text) {
  const auto address = application::parse_address(text, kAnyPort);
  return address ? std::optional(address->ip) : std::nullopt;
}

std::optional<std::string> value_of(std::span<const std::string> arguments,
                                    std::string_view option) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == option && i + 1 < arguments.size()) return arguments[i + 1];
    if (arguments[i].starts_with(std::string(option) + "="))
      return arguments[i].substr(option.size() + 1);
  }
  return std::nullopt;
}

}  // namespace

std::string nvmf_device_address(std::span<const std::string> arguments) {
  if (arguments.empty()) return "";
  if (arguments[0] == "target") {
    const auto listen = ip_of(value_of(arguments, "--listen").value_or(""));
    return listen ? listen->to_string() : "";
  }
  for (const std::string& argument : arguments.subspan(1)) {
    const auto peer = ip_of(argument);
    const auto source = peer ? source_towards(*peer) : std::nullopt;
    if (source) return source->to_string();
  }
  return "";
}

}  // namespace verbena::cli
