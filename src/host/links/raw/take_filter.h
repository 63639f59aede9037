// Classic BPF programs that share packets out between a packet socket and a UDP socket of the same
// process (taken_traffic.h). The UDP socket drops the packets that the packet socket takes. So the
// kernel has a socket for each packet and sends no ICMP "port unreachable", and none is received
// twice.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "host/links/raw/taken_traffic.h"

namespace verbena::host {

// For a packet socket: sees frames from their Ethernet header on.
[[nodiscard]] std::vector<sock_filter> take_filter(const TakenTraffic& taken);
// For a UDP socket on port 4791: sees datagrams from their UDP header on.
[[nodiscard]] std::vector<sock_filter> leave_filter(const TakenTraffic& taken);

[[nodiscard]] bool attach_filter(int fd, std::vector<sock_filter> program);  // false: errno

}  // namespace verbena::host
