#include "host/links/source_ports.h"

#include <cerrno>
#include <cstring>

#include "wire/roce/source_port.h"

namespace verbena::host {
namespace {

constexpr u32 kMaxTries = 64;
constexpr u32 kPortsInRange = 0x10000 - kFirstSourcePort;

// The first free port from `wanted` on. Free: unbound, or bound by our own kind of the same user.
SourcePort open_near(const GID& address, u32 interface_index, u16 wanted, u16 destination_port) {
  for (u32 i = 0; i < kMaxTries; ++i) {
    const u32 number = kFirstSourcePort + (wanted - kFirstSourcePort + i) % kPortsInRange;
    SourcePort port(address, static_cast<u16>(number), interface_index, destination_port);
    if (port.is_open() || errno != EADDRINUSE) return port;
  }
  return {};
}

}  // namespace

Expected<std::unique_ptr<SourcePorts>> SourcePorts::open(const GID& address, u32 interface_index,
                                                         u16 destination_port) {
  std::unique_ptr<SourcePorts> ports(new SourcePorts(address, interface_index, destination_port));
  ports->first_ = open_near(address, interface_index, kFirstSourcePort, destination_port);
  if (!ports->first_.is_open())
    return failure(errno, "cannot open a UDP socket on " + address.to_string() +
                              " to send from: " + std::strerror(errno));
  return ports;
}

SourcePort& SourcePorts::open_slot(u16 wanted) {
  const std::size_t slot = wanted % kMaxPorts;
  ports_[slot] = open_near(address_, interface_index_, static_cast<u16>(wanted | kFirstSourcePort),
                           destination_port_);
  used_[slot] = ports_[slot].is_open() ? &ports_[slot] : &first_;
  return *used_[slot];
}

void SourcePorts::close() {
  for (SourcePort& port : ports_) port.close();
  used_.fill(nullptr);
  first_.close();
}

}  // namespace verbena::host
