// SubnetServer: the management plane of a live InfiniBand fabric (docs/infiniband.md): the
// scenario's hosts and switches as nodes of a management::Subnet, and the MAD agents of the
// programs that manage it. Real time; without sockets, which FabricServer has.
#pragma once

#include <optional>

#include "fabric/scenario/scenario.h"
#include "host/links/fabric/management_protocol.h"
#include "management/mad_agents.h"
#include "management/subnet.h"

namespace verbena::live {

class SubnetServer {
 public:
  // The scenario outlives it, and is of InfiniBand.
  explicit SubnetServer(const fabric::Scenario& scenario);

  // --- programs, which stand on hosts by their number
  [[nodiscard]] u32 open_port(u32 host) { return agents_.open(place_of(host)); }
  void close_port(u32 client, Time now);
  [[nodiscard]] int on_register(const host::FabricMADRegister& request, Time now);  // errno
  void on_mad(u32 client, const host::FabricMAD& header, std::vector<u8> mad, Time now);
  [[nodiscard]] host::FabricPortAttributes attributes_of(u32 host) const;

  void on_timer(Time now);
  [[nodiscard]] Time next_timer() const;
  [[nodiscard]] std::optional<management::ReceivedMAD> poll_received();

  [[nodiscard]] management::Subnet& subnet() { return subnet_; }
  [[nodiscard]] management::PortPlace place_of(u32 host) const {
    return {scenario_.plan.hosts[host], 1};
  }

 private:
  void add_nodes();
  void add_links();
  void pump(Time now);

  const fabric::Scenario& scenario_;
  management::Subnet subnet_;
  management::MADAgents agents_;
};

}  // namespace verbena::live
