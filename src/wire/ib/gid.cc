#include "wire/ib/gid.h"

#include <arpa/inet.h>

#include <cstring>

#include "base/bytes.h"
#include "base/check.h"

namespace verbena {

std::string GID::to_string() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const char* end = is_ipv4() ? inet_ntop(AF_INET, bytes.data() + 12, text.data(), text.size())
                              : inet_ntop(AF_INET6, bytes.data(), text.data(), text.size());
  CHECK(end != nullptr);
  return text.data();
}

std::optional<GID> GID::parse(std::string_view text) {
  std::array<char, INET6_ADDRSTRLEN> copy{};  // inet_pton needs a 0 at the end
  if (text.size() >= copy.size() || text.find('\0') != text.npos) return std::nullopt;
  std::memcpy(copy.data(), text.data(), text.size());

  std::array<u8, 4> ipv4{};
  if (inet_pton(AF_INET, copy.data(), ipv4.data()) == 1) return from_ipv4(load_be32(ipv4.data()));
  GID gid;
  if (inet_pton(AF_INET6, copy.data(), gid.bytes.data()) == 1) return gid;
  return std::nullopt;
}

}  // namespace verbena
