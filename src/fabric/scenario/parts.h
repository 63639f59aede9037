// The parts of a scenario file, each from its section.
#pragma once

#include "fabric/network.h"
#include "fabric/scenario/expectation.h"
#include "fabric/scenario/file_reader.h"
#include "fabric/scenario/section.h"
#include "fabric/technology.h"
#include "fabric/topologies/plan.h"

namespace verbena::fabric {

// The key of that name, of the whole file.
[[nodiscard]] Technology read_technology(Section& root);
[[nodiscard]] PlanLinks read_links(Section links);
// Returns nullopt if the error has been reported.
[[nodiscard]] std::optional<Plan> read_topology(Section topology, const PlanLinks& links,
                                                const FileReader& read_file);
// Hosts and switches: `hosts`, and the sections tcp and switch, or infiniband.
void read_fabric(Section& root, Section hosts, const Plan& plan, NetworkConfig& config);
// Precondition of the others: `hosts` is read first, for the longest frame.
void read_hosts(Section hosts, const Plan& plan, NetworkConfig& config);
void read_switch(Section switches, const Plan& plan, u32 longest_frame, NetworkConfig& config);
void read_infiniband(Section& root, const Plan& plan, NetworkConfig& config);
void read_forwarding(Section section, ForwardingConfig& forwarding);
// Reads one or several priorities, a bit each.
[[nodiscard]] u8 read_priorities(Section& section, std::string_view key, u8 fallback);
// Reads the settings of hosts that speak TCP; others have no use for them. Precondition: `hosts` is
// read first.
void read_tcp(Section tcp, NetworkConfig& config);
// Returns the largest frame that hosts of this network send.
[[nodiscard]] u32 longest_frame_of(const NetworkConfig& config);
// `assert`: one or several.
[[nodiscard]] std::vector<Expectation> read_expectations(Section& root);
// Applies the conventions of another simulator, in place of the values that both have read.
void read_compat(Section& root, const Plan& plan, NetworkConfig& config);
struct WorkloadContext {
  const Plan& plan;
  const FileReader& read_file;
  Time end;
  u64 seed = 1;
};
void read_workload(Section workload, const WorkloadContext& context, PRNG& prng,
                   std::vector<Flow>& flows);
void read_faults(Section& root, const Plan& plan, NetworkConfig& config);

}  // namespace verbena::fabric
