// The conventions of HPCC's ns-3 model (scenario.h lists them), for a folder of that model and for
// any other scenario that is to be run with them: what hosts, ports of switches and the network are
// like, from the model's settings.
#pragma once

#include "fabric/hpcc_ns3/config.h"
#include "fabric/hpcc_ns3/paths.h"
#include "fabric/network.h"

namespace verbena::fabric::hpcc_ns3 {

// Reference: T and the window, both of the longest path.
struct Reference {
  Duration round_trip;
  u64 window = 0;  // bytes
};
// Returns whether T and the window are used.
[[nodiscard]] bool needs_reference(const Config& config);
[[nodiscard]] Paths::Extent extent_of(const Config& config, const Topology& topology);

// The settings of the experiments that were published with the model (Li et al., HPCC, SIGCOMM
// 2019, 5.1, DCQCN at 100 Gb/s), where they are not those that it has without a config.txt.
[[nodiscard]] Config published_config();

class Conventions {
 public:
  Conventions(const Config& config, const Topology& topology);

  [[nodiscard]] CongestionParameters congestion(Rate line_rate) const;
  [[nodiscard]] SharedBuffer::PortConfig buffer(const LinkConfig& link) const;
  [[nodiscard]] SwitchPortConfig switch_port(const LinkConfig& link) const;
  // Makes it one of that model.
  void follow(HostConfig& host, const LinkConfig& link,
              const CongestionParameters& congestion) const;
  void follow(NetworkConfig& network) const;

 private:
  Config config_;
  Rate nic_;
  Reference reference_;
};

}  // namespace verbena::fabric::hpcc_ns3
