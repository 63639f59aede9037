// The counters in Prometheus's text format 0.0.4: a line each, after HELP and TYPE of its name.
// Names are those of sysfs with verbena_ before and _total behind; labels are device, pid and comm.
// At most kMaxQPs QPs and kMaxPeers peers of each device have lines of their own.
#pragma once

#include <string>

#include "cli/stats_report.h"

namespace verbena::cli {

inline constexpr std::size_t kMaxQPs = 256, kMaxPeers = 256;
inline constexpr const char* kPrometheusContentType = "text/plain; version=0.0.4; charset=utf-8";

[[nodiscard]] std::string to_prometheus(const StatsReport& report);

}  // namespace verbena::cli
