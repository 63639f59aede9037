// What a report shows of one run packet by packet, from the rows of results.sqlite: who was how far
// when, messages, the longest queues and the busiest links.
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

// Of GPUs by one measure, in its order: all where they are few, else the first and the last.
[[nodiscard]] std::vector<i64> ends_of(const fabric::SQLiteReader::JSON& gpus, std::size_t shown);

}  // namespace verbena::jobs
