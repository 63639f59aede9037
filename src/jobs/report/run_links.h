// The data of a report on the links of one run and on the messages over them, from the rows of
// results.sqlite. docs/viewer.md has the format.
#pragma once

#include <string>
#include <vector>

#include "base/rate.h"
#include "base/types.h"
#include "fabric/results/sqlite_reader.h"

namespace verbena::jobs {

struct RunOfReport {
  std::string name;  // in the column `algorithm`
  i64 end_ps = 0, interval_ps = 0;
};

// Adds `use`, `totals`, `paused` and `transfers` to the run's data. `rates`: of each direction.
void add_links(fabric::SQLiteReader& rows, const RunOfReport& run, const std::vector<Rate>& rates,
               fabric::SQLiteReader::JSON& data);

}  // namespace verbena::jobs
