#include "coll/host_port.h"

#include <charconv>

namespace verbena::coll {

std::optional<HostPort> parse_host_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  HostPort parts{.host = std::string(host)};
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, end, parts.port);
  if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  return parts;
}

}  // namespace verbena::coll
