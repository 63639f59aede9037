// The charts of a report on one run packet by packet, from the rows of results.sqlite: the progress
// of GPUs over time, messages, the longest queues and the busiest links.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"
#include "fabric/results/sqlite_reader.h"

namespace verbena::jobs {

// `name`: the run's, in the column `algorithm`.
[[nodiscard]] fabric::SQLiteReader::JSON run_charts(fabric::SQLiteReader& rows,
                                                    const std::string& name, i64 end_ps,
                                                    i64 interval_ps);

// Returns the GPUs in the order of one measure: all if they are few, else the first and the last.
[[nodiscard]] std::vector<i64> ends_of(const fabric::SQLiteReader::JSON& gpus, std::size_t shown);

}  // namespace verbena::jobs
