#include "cli/nic_counters.h"

#include <algorithm>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

namespace verbena::cli {
namespace {

NICFunctionStatus nic_function_status(const YAML::Node& node) {
  NICFunctionStatus out{.name = node["name"].as<std::string>(),
                        .address = node["address"].as<std::string>(),
                        .programs = node["programs"].size()};
  for (const auto& entry : node["counters"])
    out.counters.emplace_back(entry.first.as<std::string>(), entry.second.as<u64>());
  return out;
}

std::string nic_metric_line(const std::string& metric, const NICFunctionStatus& function,
                            u64 value) {
  return fmt::format("{}{{function=\"{}\",address=\"{}\"}} {}\n", metric, function.name,
                     function.address, value);
}

// The rates of a function, for each second.
struct NICRates {
  double sent_packets = 0, sent_bps = 0, received_packets = 0, received_bps = 0, refused = 0;
};

NICRates nic_rates(const NICFunctionStatus& before, const NICFunctionStatus& now, double seconds) {
  const auto rate_of = [&](u64 from, u64 to) {
    return to < from ? 0.0 : static_cast<double>(to - from) / seconds;
  };
  const auto rate = [&](const char* name) {
    return rate_of(before.counter(name), now.counter(name));
  };
  return {.sent_packets = rate("sent_packets"),
          .sent_bps = 8 * rate("sent_bytes"),
          .received_packets = rate("received_packets"),
          .received_bps = 8 * rate("received_bytes"),
          .refused = rate_of(before.refused(), now.refused())};
}

}  // namespace

u64 NICFunctionStatus::counter(const std::string& wanted) const {
  const auto found = std::ranges::find(counters, wanted, &std::pair<std::string, u64>::first);
  return found == counters.end() ? 0 : found->second;
}

u64 NICFunctionStatus::refused() const {
  u64 sum = 0;
  for (const auto& [counted, value] : counters)
    if (counted.find("refused_") != std::string::npos) sum += value;
  return sum;
}

Expected<NICStatus> read_nic_status(const std::string& json) {
  try {
    NICStatus out;
    for (const YAML::Node& node : YAML::Load(json)["functions"])
      out.push_back(nic_function_status(node));
    return out;
  } catch (const YAML::Exception& e) {
    return failure(kExitCannot, fmt::format("the status cannot be read: {}", e.what()));
  }
}

std::string nic_metrics(const NICStatus& status) {
  std::string out =
      "# HELP verbena_nic_programs programs attached to the function\n"
      "# TYPE verbena_nic_programs gauge\n";
  for (const NICFunctionStatus& function : status)
    out += nic_metric_line("verbena_nic_programs", function, function.programs);
  if (status.empty()) return out;
  for (const auto& [counter, unused] : status.front().counters) {
    const std::string metric = "verbena_nic_" + counter + "_total";
    out += fmt::format("# TYPE {} counter\n", metric);
    for (const NICFunctionStatus& function : status)
      out += nic_metric_line(metric, function, function.counter(counter));
  }
  return out;
}

std::string nic_table(const NICStatus& before, const NICStatus& now, Duration between) {
  std::string out =
      fmt::format("{:<16} {:<24} {:>8} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "FUNCTION", "ADDRESS",
                  "PROGRAMS", "SENT/S", "SENT Mb/s", "RECV/S", "RECV Mb/s", "REFUSED/S");
  const double seconds = std::max(static_cast<double>(between.ns()) / 1e9, 1e-9);
  for (const NICFunctionStatus& function : now) {
    const auto earlier = std::ranges::find(before, function.name, &NICFunctionStatus::name);
    const NICRates rates =
        nic_rates(earlier == before.end() ? function : *earlier, function, seconds);
    out += fmt::format("{:<16} {:<24} {:>8} {:>10.0f} {:>10.1f} {:>10.0f} {:>10.1f} {:>10.0f}\n",
                       function.name, function.address, function.programs, rates.sent_packets,
                       rates.sent_bps / 1e6, rates.received_packets, rates.received_bps / 1e6,
                       rates.refused);
  }
  return out;
}

}  // namespace verbena::cli
