// SourcePorts: the sockets that a UDP link sends from, one for each UDP source port in use. QPs
// have different ports so that ECMP spreads them; a QP keeps its port, so that its packets stay in
// order. Invariant: at most kMaxPorts sockets and one more; the number of a port never changes.
#pragma once

#include <array>
#include <memory>

#include "host/links/source_port.h"
#include "host/os/error.h"

namespace verbena::host {

class SourcePorts {
 public:
  static constexpr std::size_t kMaxPorts = 16;

  // Opens the first port, which stands in where another cannot be had.
  [[nodiscard]] static Expected<std::unique_ptr<SourcePorts>> open(
      const GID& address, u32 interface_index, u16 destination_port = kRoCEv2Port);

  // The port for frames that want `wanted`: that very one for the first 16 that differ in their low
  // four bits, and for the others one of those.
  [[nodiscard]] SourcePort& get(u16 wanted) {
    SourcePort* const port = used_[wanted % kMaxPorts];
    return port != nullptr ? *port : open_slot(wanted);
  }
  [[nodiscard]] SourcePort& first() { return first_; }
  [[nodiscard]] const GID& address() const { return address_; }
  void close();

 private:
  SourcePorts(const GID& address, u32 interface_index, u16 destination_port)
      : address_(address), interface_index_(interface_index), destination_port_(destination_port) {}
  SourcePort& open_slot(u16 wanted);

  GID address_;
  u32 interface_index_;
  u16 destination_port_;
  SourcePort first_;
  std::array<SourcePort, kMaxPorts> ports_;
  std::array<SourcePort*, kMaxPorts> used_{};  // nullptr: not wanted yet
};

}  // namespace verbena::host
