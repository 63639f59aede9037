// The counters of virtual functions as `verbena nic status` gives them, and two views of them:
// Prometheus's text format 0.0.4, and a table of rates.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "base/types.h"
#include "cli/failure.h"

namespace verbena::cli {

struct NICClassStatus {
  u64 traffic_class = 0, sent_packets = 0, sent_bytes = 0;
  friend bool operator==(const NICClassStatus&, const NICClassStatus&) = default;
};

struct NICFunctionStatus {
  std::string name, address;
  u64 programs = 0;  // attached
  std::vector<std::pair<std::string, u64>> counters{};
  std::vector<NICClassStatus> classes{};
  [[nodiscard]] u64 counter(const std::string& wanted) const;  // 0 if there is none of the name
  [[nodiscard]] u64 refused() const;  // the sum of the counters of refused packets and requests
  friend bool operator==(const NICFunctionStatus&, const NICFunctionStatus&) = default;
};
using NICStatus = std::vector<NICFunctionStatus>;

// Reads the JSON of `verbena nic status`.
[[nodiscard]] Expected<NICStatus> read_nic_status(const std::string& json);

// verbena_nic_programs, and verbena_nic_NAME_total for each counter, by function and address; and
// verbena_nic_class_sent_packets_total and verbena_nic_class_sent_bytes_total by traffic class,
// too.
[[nodiscard]] std::string nic_metrics(const NICStatus& status);

// Returns a line for each function of `now`, with its sent and received counts per second since
// `before`, and one for each traffic class that sends, where the function sends in several.
[[nodiscard]] std::string nic_table(const NICStatus& before, const NICStatus& now,
                                    Duration between);

}  // namespace verbena::cli
