#include "jobs/storage/storage_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "fabric/scenario/units.h"

namespace verbena::jobs {
namespace {

using fabric::duration_text;

// The smallest that so many of a hundred do not exceed. Precondition: there are some, in order.
Duration percentile(const std::vector<Duration>& sorted, std::size_t hundredths) {
  const std::size_t rank = (sorted.size() * hundredths + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

std::string rate_text(const StorageResult& result) {
  return fmt::format("{:.2f}", result.rate() / 1e9);
}

}  // namespace

double StorageResult::rate() const {
  return time == Duration() ? 0 : static_cast<double>(bytes) / gpus / time.seconds();
}

StorageResult storage_result(std::vector<StorageRead> reads, const StorageConfig& config, u32 gpus,
                             Duration time) {
  StorageResult result{.reads = std::move(reads), .gpus = gpus, .bytes = 0, .time = time};
  result.bytes = result.reads.size() * config.block_bytes;
  std::vector<Duration> latencies;
  for (const StorageRead& read : result.reads) latencies.push_back(read.end - read.begin);
  if (latencies.empty()) return result;
  std::ranges::sort(latencies);
  result.median = percentile(latencies, 50);
  result.p99 = percentile(latencies, 99);
  result.longest = latencies.back();
  return result;
}

std::string text_of(const StorageResult& result) {
  return fmt::format("storage: {} reads, {} GB/s of each GPU, latency p50 {}, p99 {}, max {}\n",
                     result.reads.size(), rate_text(result), duration_text(result.median),
                     duration_text(result.p99), duration_text(result.longest));
}

std::vector<fabric::SummaryLine> lines_of(const StorageResult& result) {
  return {{"storage, GB/s of a GPU", rate_text(result)},
          {"storage p50", duration_text(result.median)},
          {"storage p99", duration_text(result.p99)}};
}

}  // namespace verbena::jobs
