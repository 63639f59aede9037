#include "host/links/fabric/address_map.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace verbena::host {

Expected<AddressMap> AddressMap::parse(const std::string& text) {
  AddressMap map;
  std::istringstream lines(text);
  std::string line;
  for (u32 number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string address, target, more;
    if (!(words >> address)) continue;
    words >> target >> more;
    const auto mistake = [&](const std::string& what) {
      return failure(EINVAL, "line " + std::to_string(number) + ": " + what);
    };
    const std::optional<GID> from = GID::parse(address), to = GID::parse(target);
    if (!from) return mistake(address + " is no IP address");
    if (!to)
      return mistake("the GID of a port, or the address of a host, is needed for " + address);
    if (!more.empty()) return mistake("there is more behind the GID: " + more);
    map.entries_.push_back({*from, *to});
  }
  std::ranges::stable_sort(map.entries_, {},
                           [](const Entry& entry) { return entry.address.bytes; });
  const auto twice =
      std::ranges::adjacent_find(map.entries_, std::ranges::equal_to{}, &Entry::address);
  if (twice != map.entries_.end())
    return failure(EINVAL, twice->address.to_string() + " is there twice");
  return map;
}

Expected<AddressMap> AddressMap::from_environment() {
  const char* const path = std::getenv(kAddressesVariable);
  if (path == nullptr || *path == 0) return AddressMap();
  const auto in_file = [path](int error, const std::string& what) {
    return failure(error, std::string(kAddressesVariable) + ": " + path + ": " + what);
  };
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) return in_file(ENOENT, "cannot be read, or is empty");
  Expected<AddressMap> map = parse(text.str());
  if (!map) return in_file(map.error().error, map.error().message);
  return map;
}

std::optional<GID> AddressMap::target_of(const GID& address) const {
  const auto found = std::ranges::lower_bound(
      entries_, address.bytes, {}, [](const Entry& entry) { return entry.address.bytes; });
  if (found == entries_.end() || found->address != address) return std::nullopt;
  return found->target;
}

std::optional<GID> AddressMap::address_of(const GID& target, bool ipv4) const {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.target == target && entry.address.is_ipv4() == ipv4;
  });
  return found == entries_.end() ? std::nullopt : std::optional(found->address);
}

}  // namespace verbena::host
