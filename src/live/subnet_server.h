// SubnetServer: the management plane of a live InfiniBand fabric (docs/infiniband.md): the
// scenario's hosts and switches as nodes of a management::Subnet, and the MAD agents of the
// programs that manage it. The tables that a manager writes forward the packets of the LiveFabric;
// performance management reads the counters of the LiveFabric. Real time; without sockets, which
// FabricServer has.
#pragma once

#include <optional>

#include "fabric/live/live_fabric.h"
#include "host/links/fabric/management_protocol.h"
#include "management/mad_agents.h"
#include "management/subnet.h"

namespace verbena::live {

class SubnetServer {
  using PortPlace = management::PortPlace;

 public:
  // The fabric outlives it, and is of InfiniBand.
  explicit SubnetServer(fabric::LiveFabric& fabric);

  // --- programs, which stand on hosts by their number
  [[nodiscard]] u32 open_port(u32 host) { return agents_.open(place_of(host)); }
  void close_port(u32 client, Time now);
  [[nodiscard]] int on_register(const host::FabricMADRegister& request, Time now);  // errno
  void on_mad(u32 client, const host::FabricMAD& header, std::vector<u8> mad, Time now);
  [[nodiscard]] host::FabricPortAttributes attributes_of(u32 host) const;

  void on_timer(Time now);
  [[nodiscard]] Time next_timer() const;
  [[nodiscard]] std::optional<management::ReceivedMAD> poll_received();

  // A host whose port has changed.
  struct Change {
    u32 host = 0;
    bool client_reregister = false;
  };
  [[nodiscard]] std::optional<Change> poll_change();

  // --- packets of the hosts' programs
  // Returns the LID of the host's port; 0 if it has none yet.
  [[nodiscard]] u16 lid_of(u32 host) const { return subnet_.port(place_of(host)).lid(); }
  // Fills in lane and destination. Returns false if the port cannot send it, or if it has no
  // destination.
  [[nodiscard]] bool admit_sent(u32 host, u8 service_level, fabric::LivePacket& packet);
  // Returns whether the port of the host accepts it: its LID, its state, its partitions. IBTA
  // 10.9.3
  [[nodiscard]] bool admit_received(u32 host, const fabric::LivePacket& packet, Time now);
  // Applies what a manager has written since the last call to packets from now on.
  void apply_tables();
  // Pulls a cable of the scenario, by number, or puts it in again.
  void set_link(u32 link, bool up, Time now);
  // Sets the probability that a packet on the link is lost to an error; ports count those errors,
  // and trap 129 reports them.
  void set_error_rate(u32 link, double rate);
  // Causes flow control errors, at both ends: traps 130 and 131.
  void overrun(u32 link, Time now);
  void stall_credits(u32 link, Time now);
  // Switches a node with all of its links on or off; a node that had no power knows nothing of its
  // manager.
  void set_power(u32 node, bool on, Time now);

  [[nodiscard]] management::PortPlace place_of(u32 host) const {
    return {scenario_.plan.hosts[host], 1};
  }

 private:
  void add_nodes();
  void add_links();
  void pump(Time now);
  void apply_tables_of(u32 node);
  void read_counters();
  void watch_errors(Time now);

  fabric::LiveFabric& fabric_;
  const fabric::Scenario& scenario_;
  std::vector<std::array<PortPlace, 2>> links_;  // by number
  std::vector<u32> host_of_node_;
  std::vector<u32> node_of_lid_;  // kNoNode: none
  management::Subnet subnet_;
  management::MADAgents agents_;
  bool has_errors_ = false;  // some link has had an error rate
  Time next_watch_;
};

}  // namespace verbena::live
