// Bill: what a network costs and draws, as the catalogue has it: a NIC for each host (several where
// none is as fast as its links), a switch for each that is drawn, a cable for each link.
//   NIC     of those that speak the technology and are fast enough, the cheapest
//   switch  of those that have the ports (split where they are faster than the links), the
//           cheapest; where one drawn has more ports than any, a leaf and spine network without
//           oversubscription of the one that is cheapest so: three boxes for the ports of one
//   cable   of those that reach the length that the link's delay stands for (5 ns/m), the cheapest
// Hosts themselves, racks, spares, licences and work are not in it.
#pragma once

#include <string>
#include <vector>

#include "fabric/topologies/plan.h"
#include "jobs/plan/catalogue.h"
#include "jobs/presets.h"

namespace verbena::jobs {

struct BillItem {
  std::string what;
  u64 count = 0;
  Range dollars, watts;  // of all of them
  std::string source;    // of the prices, with their year
};

struct Bill {
  std::vector<BillItem> items;
  Range dollars, watts;
  // The parts that the catalogue lacks, and the parts that the bill counts instead; "" if it has
  // all.
  std::string shortfall;
  u64 switch_buffer_bytes = 0;  // of the switches chosen; 0: not known

  [[nodiscard]] bool can_be_had() const { return shortfall.empty(); }
};

struct BillRequest {
  const fabric::Plan& plan;
  fabric::Technology technology = fabric::Technology::kRoCEv2;
  const Preset* preset = nullptr;  // whose parts are taken where they speak the technology
  u32 cable_metres = 0;            // 0: as the links' delays have it
};

[[nodiscard]] Bill bill_of(const BillRequest& request);

// Returns the length of a cable with this delay at 5 ns/m, rounded up.
[[nodiscard]] u32 metres_of(Duration delay);

}  // namespace verbena::jobs
