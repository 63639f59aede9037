#include "host/network/local_address.h"

#include <algorithm>
#include <cerrno>

#include "wire/ib/mtu.h"

namespace verbena::host {
namespace {

constexpr u64 kLocallyAdministered = u64{0x02} << 56;  // EUI-64: made up here

u64 made_up_guid(const InterfaceTable& table, const LocalAddress& address) {
  u64 hash = 0xcbf29ce484222325;  // FNV-1a
  const std::string name = address.ipv4 ? address.ipv4->to_string() : address.ipv6->to_string();
  for (const char c : table.host_id + address.interface + name)
    hash = (hash ^ static_cast<u8>(c)) * 0x100000001b3;
  return (hash & ~(u64{0x03} << 56)) | kLocallyAdministered;
}

// Modified EUI-64, as in IPv6 interface identifiers. RFC 4291, appendix A.
u64 guid_of(const InterfaceTable& table, const Interface& interface, const LocalAddress& address) {
  const auto& mac = interface.mac;
  if (mac == std::array<u8, 6>{}) return made_up_guid(table, address);
  u64 guid = 0;
  for (const u8 byte :
       {static_cast<u8>(mac[0] ^ 0x02), mac[1], mac[2], u8{0xff}, u8{0xfe}, mac[3], mac[4], mac[5]})
    guid = (guid << 8) | byte;
  return guid;
}

std::optional<GID> first_ipv4(const Interface& interface) {
  for (const InterfaceAddress& a : interface.addresses)
    if (a.usable && a.gid.is_ipv4()) return a.gid;
  return std::nullopt;
}

std::optional<GID> best_ipv6(const Interface& interface) {
  std::optional<GID> best;
  for (const InterfaceAddress& a : interface.addresses) {
    if (!a.usable || a.gid.is_ipv4()) continue;
    if (a.gid.is_link_local()) return a.gid;
    if (!best) best = a.gid;
  }
  return best;
}

bool has_usable_address(const Interface& interface) {
  return first_ipv4(interface) || best_ipv6(interface);
}

bool is_usable(const Interface& interface) {
  return interface.up && has_usable_address(interface) && largest_mtu_for_link(interface.mtu);
}

LocalAddress on_interface(const InterfaceTable& table, const Interface& interface,
                          std::optional<GID> ipv4, std::optional<GID> ipv6) {
  LocalAddress address{.device_name = {},
                       .interface = interface.name,
                       .interface_index = interface.index,
                       .mtu = interface.mtu,
                       .ipv4 = ipv4,
                       .ipv6 = ipv6,
                       .link_speed_mbps = interface.link_speed_mbps};
  address.node_guid = guid_of(table, interface, address);
  return address;
}

std::vector<GID> others_than(const LocalAddress& address, const Interface& interface) {
  std::vector<GID> others;
  for (const InterfaceAddress& a : interface.addresses) {
    if (others.size() == LocalAddress::kMaxOthers) break;
    if (a.usable && a.gid != address.ipv4 && a.gid != address.ipv6) others.push_back(a.gid);
  }
  return others;
}

LocalAddress whole_interface(const InterfaceTable& table, const Interface& interface) {
  LocalAddress address =
      on_interface(table, interface, first_ipv4(interface), best_ipv6(interface));
  address.others = others_than(address, interface);
  return address;
}

// All of the loopback interface's IPv4 prefix is this host (127.0.0.2 is as good as 127.0.0.1).
bool has_address(const Interface& interface, const GID& gid) {
  return std::ranges::any_of(interface.addresses, [&](const InterfaceAddress& a) {
    if (a.gid == gid) return true;
    return interface.loopback && gid.is_ipv4() && a.gid.is_ipv4() && a.prefix_bits == 8 &&
           (a.gid.ipv4() >> 24) == (gid.ipv4() >> 24);
  });
}

std::optional<Error> reason_against(const Interface& interface) {
  if (!interface.up)
    return Error{ENETDOWN, "interface " + interface.name + " is down; bring it up (ip link set " +
                               interface.name + " up) or choose another in VERBENA_ADDRESS"};
  if (!largest_mtu_for_link(interface.mtu))
    return Error{EMSGSIZE, "interface " + interface.name + " has an MTU of " +
                               std::to_string(interface.mtu) + "; RoCE needs " +
                               std::to_string(bytes(MTU::k256) + kRoCEOverheadBytes)};
  return std::nullopt;
}

Expected<LocalAddress> resolve_address(const InterfaceTable& table, const GID& gid) {
  const auto found = std::ranges::find_if(
      table.interfaces, [&](const Interface& interface) { return has_address(interface, gid); });
  if (found == table.interfaces.end())
    return failure(EADDRNOTAVAIL, "VERBENA_ADDRESS: " + gid.to_string() +
                                      " is not an address of this host; `ip address` lists them");
  if (auto reason = reason_against(*found)) return tl::unexpected(*reason);
  return gid.is_ipv4() ? on_interface(table, *found, gid, std::nullopt)
                       : on_interface(table, *found, std::nullopt, gid);
}

Expected<LocalAddress> resolve(const InterfaceTable& table, const std::string& word) {
  if (const auto gid = GID::parse(word)) return resolve_address(table, *gid);
  const auto found = std::ranges::find(table.interfaces, word, &Interface::name);
  if (found == table.interfaces.end())
    return failure(ENODEV, "VERBENA_ADDRESS: '" + word +
                               "' is neither an IP address nor an interface of this host; "
                               "`ip address` lists both");
  if (auto reason = reason_against(*found)) return tl::unexpected(*reason);
  if (!has_usable_address(*found))
    return failure(EADDRNOTAVAIL,
                   "interface " + word + " has no IP address; give it one, or choose another");
  return whole_interface(table, *found);
}

Expected<LocalAddress> default_choice(const InterfaceTable& table) {
  const Interface* other = nullptr;
  const Interface* loopback = nullptr;
  for (const Interface& interface : table.interfaces) {
    if (!is_usable(interface)) continue;
    if (interface.name == table.default_route_interface) return whole_interface(table, interface);
    const Interface*& place = interface.loopback ? loopback : other;
    if (place == nullptr) place = &interface;
  }
  if (other != nullptr) return whole_interface(table, *other);
  if (loopback != nullptr) return whole_interface(table, *loopback);
  return failure(EADDRNOTAVAIL,
                 "no usable address: no network interface is up with an IP address; "
                 "`ip link set lo up` gives at least 127.0.0.1");
}

std::vector<std::string> split_words(const std::string& list) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    std::string word = list.substr(at, comma - at);
    std::erase(word, ' ');
    words.push_back(word);
    at = comma + 1;
  }
  return words;
}

bool is_same_place(const LocalAddress& a, const LocalAddress& b) {
  return (a.ipv4 && a.ipv4 == b.ipv4) ||
         (a.ipv6 && a.ipv6 == b.ipv6 && a.interface_index == b.interface_index);
}

}  // namespace

std::vector<GID> LocalAddress::all() const {
  std::vector<GID> gids;
  if (ipv4) gids.push_back(*ipv4);
  if (ipv6) gids.push_back(*ipv6);
  gids.insert(gids.end(), others.begin(), others.end());
  return gids;
}

Expected<std::vector<LocalAddress>> choose_local_addresses(const std::string& choice) {
  const Expected<InterfaceTable> table = InterfaceTable::read();
  if (!table) return tl::unexpected(table.error());
  return choose_local_addresses(choice, *table);
}

Expected<std::vector<LocalAddress>> choose_local_addresses(const std::string& choice,
                                                           const InterfaceTable& table) {
  std::vector<LocalAddress> chosen;
  const std::vector<std::string> words =
      choice.empty() ? std::vector<std::string>{""} : split_words(choice);
  for (const std::string& word : words) {
    if (word.empty() && !choice.empty())
      return failure(EINVAL, "VERBENA_ADDRESS: '" + choice + "' has an empty element");
    Expected<LocalAddress> address = choice.empty() ? default_choice(table) : resolve(table, word);
    if (!address) return tl::unexpected(address.error());
    if (std::ranges::any_of(chosen, [&](const auto& c) { return is_same_place(c, *address); }))
      return failure(EINVAL, "VERBENA_ADDRESS: '" + word + "' names an address a second time");
    address->device_name = "verbena" + std::to_string(chosen.size());
    chosen.push_back(std::move(*address));
  }
  return chosen;
}

}  // namespace verbena::host
