#include "host/network/interface_table.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>

#include "host/network/socket_address.h"
#include "host/os/kernel_socket.h"

namespace verbena::host {
namespace {

constexpr u32 kRouteUp = 0x1;                  // RTF_UP
constexpr u32 kAddressUnusable = 0x40 | 0x08;  // IFA_F_TENTATIVE, IFA_F_DADFAILED

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

u32 mtu_of(const std::string& name) {
  const Descriptor socket = open_kernel_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC);
  ifreq request{};
  std::memcpy(request.ifr_name, name.data(), std::min(name.size(), sizeof(request.ifr_name) - 1));
  return ::ioctl(socket.get(), SIOCGIFMTU, &request) == 0 ? static_cast<u32>(request.ifr_mtu) : 0;
}

u64 speed_of(const std::string& name) {
  i64 mbps = 0;
  std::ifstream("/sys/class/net/" + name + "/speed") >> mbps;
  return mbps > 0 ? static_cast<u64>(mbps) : 0;
}

u32 prefix_bits_of(const sockaddr* netmask) {
  sockaddr_storage mask{};
  std::memcpy(&mask, netmask,
              netmask->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  const GID gid = gid_of(mask);
  u32 bits = 0;
  for (std::size_t i = gid.is_ipv4() ? 12 : 0; i < gid.bytes.size(); ++i)
    bits += static_cast<u32>(std::popcount(gid.bytes[i]));
  return bits;
}

// Lines of /proc/net/if_inet6: address, interface index, prefix length, scope, flags, name.
std::vector<GID> unusable_ipv6_addresses() {
  std::vector<GID> unusable;
  std::istringstream lines(read_file("/proc/net/if_inet6"));
  std::string address, name;
  u32 index = 0, prefix = 0, scope = 0, flags = 0;
  while (lines >> address >> std::hex >> index >> prefix >> scope >> flags >> name) {
    if ((flags & kAddressUnusable) == 0 || address.size() != 32) continue;
    GID gid;
    for (std::size_t i = 0; i < gid.bytes.size(); ++i)
      gid.bytes[i] = static_cast<u8>(std::stoul(address.substr(2 * i, 2), nullptr, 16));
    unusable.push_back(gid);
  }
  return unusable;
}

Interface& entry_for(const ifaddrs& from, std::vector<Interface>& interfaces) {
  const auto known = std::ranges::find(interfaces, from.ifa_name, &Interface::name);
  if (known != interfaces.end()) return *known;
  Interface& added = interfaces.emplace_back();
  added.name = from.ifa_name;
  added.index = ::if_nametoindex(from.ifa_name);
  added.mtu = mtu_of(added.name);
  added.up = (from.ifa_flags & IFF_UP) != 0 && (from.ifa_flags & IFF_RUNNING) != 0;
  added.loopback = (from.ifa_flags & IFF_LOOPBACK) != 0;
  added.link_speed_mbps = speed_of(added.name);
  return added;
}

void add_address(const ifaddrs& from, const std::vector<GID>& unusable, Interface& to) {
  if (from.ifa_addr == nullptr) return;
  const int family = from.ifa_addr->sa_family;
  if (family == AF_PACKET) {
    sockaddr_ll link{};
    std::memcpy(&link, from.ifa_addr, sizeof(link));
    if (link.sll_halen == to.mac.size()) std::memcpy(to.mac.data(), link.sll_addr, to.mac.size());
    return;
  }
  if ((family != AF_INET && family != AF_INET6) || from.ifa_netmask == nullptr) return;
  sockaddr_storage address{};
  std::memcpy(&address, from.ifa_addr,
              family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  const GID gid = gid_of(address);
  to.addresses.push_back({.gid = gid,
                          .prefix_bits = prefix_bits_of(from.ifa_netmask),
                          .usable = std::ranges::find(unusable, gid) == unusable.end()});
}

}  // namespace

std::string default_route_interface(std::string_view proc_net_route) {
  std::istringstream lines{std::string(proc_net_route)};
  std::string line, best;
  u64 best_metric = std::numeric_limits<u64>::max();
  std::getline(lines, line);  // the headings
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string interface, gateway;
    u64 destination = 0, flags = 0, references = 0, uses = 0, metric = 0, mask = 0;
    fields >> interface >> std::hex >> destination >> gateway >> flags >> std::dec >> references >>
        uses >> metric >> std::hex >> mask;
    const bool is_default = fields && destination == 0 && mask == 0 && (flags & kRouteUp) != 0;
    if (!is_default || metric >= best_metric) continue;
    best = interface;
    best_metric = metric;
  }
  return best;
}

Expected<InterfaceTable> InterfaceTable::read() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0)
    return failure(errno, std::string("cannot list network interfaces: ") + std::strerror(errno));
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  const std::vector<GID> unusable = unusable_ipv6_addresses();
  InterfaceTable table;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next)
    add_address(*one, unusable, entry_for(*one, table.interfaces));
  table.default_route_interface = host::default_route_interface(read_file("/proc/net/route"));
  table.host_id = read_file("/etc/machine-id");
  return table;
}

}  // namespace verbena::host
