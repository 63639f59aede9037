// SharedPort: the XDP port of an interface, on which one XDP program at a time can be. The programs
// of all functions there send by it. It takes all RoCEv2 packets to the addresses of these
// functions, for each QP, and the NIC gives them to the programs.
#pragma once

#include <memory>
#include <vector>

#include "host/links/raw/xdp_port.h"

namespace verbena::host {

class SharedPort {
 public:
  // On the interface of `address`.
  [[nodiscard]] static Expected<std::unique_ptr<SharedPort>> open(const LocalAddress& address,
                                                                  std::vector<GID> addresses);
  // Takes packets to these addresses from now on; no packet is lost.
  [[nodiscard]] Expected<void> retake(std::vector<GID> addresses);

  [[nodiscard]] u32 interface_index() const { return taken_.interface_index; }
  [[nodiscard]] XDPPort& port() { return *port_; }
  // For the link of one program, which ends before this. It receives nothing.
  [[nodiscard]] std::unique_ptr<RawPort> for_link();

 private:
  explicit SharedPort(TakenTraffic taken) : taken_(std::move(taken)) {}

  TakenTraffic taken_;
  LinkCounters counters_;
  std::unique_ptr<XDPPort> port_;
};

}  // namespace verbena::host
