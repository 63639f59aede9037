// The results of the reads of training data beside a job.
#pragma once

#include <string>
#include <vector>

#include "fabric/results/summary.h"
#include "jobs/storage/storage_reads.h"

namespace verbena::jobs {

struct StorageResult {
  std::vector<StorageRead> reads;  // ended while the job ran
  u32 gpus = 0;
  u64 bytes = 0;                        // of data
  Duration time{};                      // of the job
  Duration median{}, p99{}, longest{};  // from posting a command to its response; 0: no reads

  [[nodiscard]] double rate() const;  // bytes a second, of each GPU on average
};

[[nodiscard]] StorageResult storage_result(std::vector<StorageRead> reads,
                                           const StorageConfig& config, u32 gpus, Duration time);
// A line for a terminal.
[[nodiscard]] std::string text_of(const StorageResult& result);
[[nodiscard]] std::vector<fabric::SummaryLine> lines_of(const StorageResult& result);

}  // namespace verbena::jobs
