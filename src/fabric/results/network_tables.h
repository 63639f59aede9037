// The tables of results.sqlite that tell what a network is and did: docs/simulator.md has their
// columns. Scenarios have one network; jobs may have one for each algorithm, and then each row ends
// with that one's name.
#pragma once

#include <string_view>

#include "fabric/results/fault_list.h"
#include "fabric/results/network_record.h"
#include "fabric/results/sqlite_file.h"
#include "fabric/topologies/plan.h"

namespace verbena::fabric {

// `nodes` and `links`.
void write_plan(SQLiteFile& file, const Plan& plan, const PortMap& ports);
// `faults`.
void write_faults(SQLiteFile& file, const std::vector<ListedFault>& faults);

// `ports`, `pauses`, `queues`, `marks`, `loads` and `waits`.
class NetworkTables {
 public:
  // `label_column`: "algorithm TEXT", or "": there is none.
  NetworkTables(SQLiteFile& file, std::string_view label_column);
  void add(const NetworkRecord& record, const std::vector<PortTotal>& totals,
           std::string_view label);

 private:
  using Rows = SQLiteFile::Rows;

  void add_ports(const NetworkRecord& record, const std::vector<PortTotal>& totals);
  void add_pauses(const NetworkRecord& record);
  void add_queues(const NetworkRecord& record);
  void add_marks(const NetworkRecord& record);
  void add_loads(const NetworkRecord& record);
  void add_waits(const NetworkRecord& record);
  void end(Rows& rows) const;

  const bool is_labelled_;
  std::string_view label_;
  Rows ports_, pauses_, queues_, marks_, loads_, waits_;
};

}  // namespace verbena::fabric
