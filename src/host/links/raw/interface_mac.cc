#include "host/links/raw/interface_mac.h"

#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

#include "host/os/kernel_socket.h"

namespace verbena::host {

Expected<MAC> interface_mac(const LocalAddress& address) {
  ifreq request{};
  address.interface.copy(request.ifr_name, IFNAMSIZ - 1);
  const Descriptor socket = open_kernel_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC);
  if (::ioctl(socket.get(), SIOCGIFHWADDR, &request) != 0)
    return failure(
        errno, "cannot read the MAC address of " + address.interface + ": " + std::strerror(errno));
  if (request.ifr_hwaddr.sa_family != ARPHRD_ETHER)
    return failure(EOPNOTSUPP, "raw links need an Ethernet interface, which " + address.interface +
                                   " is not; VERBENA_LINK=udp works on it");
  MAC mac;
  std::memcpy(mac.bytes.data(), request.ifr_hwaddr.sa_data, mac.bytes.size());
  return mac;
}

}  // namespace verbena::host
