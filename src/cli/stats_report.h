// The report of `verbena stats` on the devices of running programs, as text and as JSON: counters
// by their names in sysfs (device/port/counter_table.h), each QP, and the sums for each peer. With
// an earlier report of the same devices it also has the increase per second.
#pragma once

#include <string>
#include <vector>

#include "host/stats/stats_reader.h"
#include "nvmf/target_stats.h"

namespace verbena::cli {

struct DeviceStats {
  host::ObservedAdapter observed;
  std::string command;  // the process's name, printable
  // The counters of the process's NVMe over Fabrics target; its first device reports them.
  std::vector<nvmf::SubsystemStats> subsystems{};
};
using StatsReport = std::vector<DeviceStats>;

// All QPs of a device that have one peer.
struct PeerStats {
  GID peer;
  u32 qp_count = 0;
  QPTraffic traffic;
  EngineCounters transport;
};
[[nodiscard]] std::vector<PeerStats> peers_of(const std::vector<host::QPSnapshot>& qps);

// Returns the same process and device in an earlier report, or nullptr if that report lacks it.
[[nodiscard]] const DeviceStats* find_same(const StatsReport& report, const DeviceStats& device);
// Returns the same QP in the earlier report, or zeros if that report lacks it or has another QP of
// the number.
[[nodiscard]] const host::QPSnapshot& find_same(const DeviceStats* before,
                                                const host::QPSnapshot& qp);
// Returns the seconds between the two reports, or 0 if there is no earlier one.
[[nodiscard]] double seconds_between(const DeviceStats* before, const DeviceStats& now);

[[nodiscard]] std::string addresses_text(const host::AdapterSnapshot& adapter);

// `before`: nullptr, or an earlier report.
[[nodiscard]] std::string to_text(const StatsReport& now, const StatsReport* before);
// Returns one array. `indent`: spaces of a level, or -1 for one line.
[[nodiscard]] std::string to_json(const StatsReport& now, int indent);

}  // namespace verbena::cli
