#include "host/stats/stats_name.h"

#include <charconv>
#include <cstring>

#include "base/check.h"
#include "host/sharing/qpn_slot.h"

namespace verbena::host {
namespace {

constexpr std::string_view kPrefix = "verbena-stats-";

// Returns false if there is no number, or if it is too large. Afterwards `text` begins after it.
template <typename T>
bool take_number(std::string_view& text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc();
}

}  // namespace

std::string StatsName::to_string() const {
  return std::string(kPrefix) + std::to_string(user) + "-" + std::to_string(slot);
}

std::optional<StatsName> StatsName::parse(std::string_view text) {
  if (!text.starts_with(kPrefix)) return std::nullopt;
  std::string_view rest = text.substr(kPrefix.size());
  StatsName name;
  if (!take_number(rest, name.user) || !rest.starts_with('-')) return std::nullopt;
  rest.remove_prefix(1);
  if (!take_number(rest, name.slot) || !is_process_slot(name.slot)) return std::nullopt;
  if (name.to_string() != text) return std::nullopt;
  return name;
}

AbstractAddress::AbstractAddress(std::string_view name) {
  CHECK(name.size() < sizeof(address.sun_path));
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // a 0 first: abstract
  size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

std::optional<ucred> sender_of(msghdr& message) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(c), sizeof(sender));
    return sender;
  }
  return std::nullopt;
}

}  // namespace verbena::host
