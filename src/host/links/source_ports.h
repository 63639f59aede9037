// SourcePorts: the sockets that a UDP link sends from, one for each UDP source port in use. QPs
// have different ports so that ECMP spreads them; a QP keeps its port, so that its packets stay in
// order. Unconnected, with path MTU discovery in probe mode: then the IPv4 Identification is 0, or
// 0, 1, 2, ... within one UDP_SEGMENT call, and the ICRC can be computed. They receive nothing.
// Invariant: at most kMaxPorts sockets; the number of a port never changes.
#pragma once

#include <array>
#include <memory>

#include "host/descriptor.h"
#include "host/error.h"
#include "wire/ib/gid.h"

namespace verbena::host {

inline constexpr u8 kSocketHopLimit = 64;  // TTL or hop limit of what says nothing else

struct SourcePort {
  int fd = -1;
  u16 number = 0;
  u8* hop_limit = nullptr;  // the socket's own, for unicast; null: it is kSocketHopLimit and stays

  // Makes it the socket's own, which is quicker than to say it with each message.
  void set_hop_limit(u8 wanted, bool is_ipv4) const;
};

class SourcePorts {
 public:
  static constexpr std::size_t kMaxPorts = 16;

  // Opens the first port, which stands in where another cannot be had.
  [[nodiscard]] static Expected<std::unique_ptr<SourcePorts>> open(const GID& address,
                                                                   u32 interface_index);

  // The port for frames that want `wanted`: that very one for the first 16 that differ in their low
  // four bits, and for the others one of those.
  [[nodiscard]] const SourcePort& get(u16 wanted) {
    const SourcePort& port = ports_[wanted % kMaxPorts];
    return port.fd >= 0 ? port : open_slot(wanted);
  }
  [[nodiscard]] const SourcePort& any() const { return first_; }
  [[nodiscard]] const GID& address() const { return address_; }
  void close();

 private:
  SourcePorts(const GID& address, u32 interface_index)
      : address_(address), interface_index_(interface_index) {
    hop_limits_.fill(kSocketHopLimit);
  }
  const SourcePort& open_slot(u16 wanted);

  GID address_;
  u32 interface_index_;
  std::array<Descriptor, kMaxPorts + 1> sockets_;
  std::array<u8, kMaxPorts + 1> hop_limits_;  // of the sockets
  std::array<SourcePort, kMaxPorts> ports_{};
  SourcePort first_{};
};

}  // namespace verbena::host
