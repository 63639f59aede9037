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
  for (const YAML::Node& one : node["sent_by_class"])
    out.classes.push_back({.traffic_class = one["class"].as<u64>(),
                           .sent_packets = one["packets"].as<u64>(),
                           .sent_bytes = one["bytes"].as<u64>()});
  return out;
}

std::string nic_metric_line(const std::string& metric, const NICFunctionStatus& function,
                            u64 value) {
  return fmt::format("{}{{function=\"{}\",address=\"{}\"}} {}\n", metric, function.name,
                     function.address, value);
}

void add_class_metric(const std::string& metric, u64 NICClassStatus::*value,
                      const NICStatus& status, std::string& out) {
  out += fmt::format("# TYPE {} counter\n", metric);
  for (const NICFunctionStatus& function : status)
    for (const NICClassStatus& one : function.classes)
      out += fmt::format("{}{{function=\"{}\",address=\"{}\",class=\"{}\"}} {}\n", metric,
                         function.name, function.address, one.traffic_class, one.*value);
}

double per_second(u64 from, u64 to, double seconds) {
  return to < from ? 0.0 : static_cast<double>(to - from) / seconds;
}

// The rates of a function, for each second.
struct NICRates {
  double sent_packets = 0, sent_bps = 0, received_packets = 0, received_bps = 0, refused = 0;
};

NICRates nic_rates(const NICFunctionStatus& before, const NICFunctionStatus& now, double seconds) {
  const auto rate = [&](const char* name) {
    return per_second(before.counter(name), now.counter(name), seconds);
  };
  return {.sent_packets = rate("sent_packets"),
          .sent_bps = 8 * (rate("sent_bytes") + rate("stream_sent_bytes")),
          .received_packets = rate("received_packets"),
          .received_bps = 8 * (rate("received_bytes") + rate("stream_received_bytes")),
          .refused = per_second(before.refused(), now.refused(), seconds)};
}

// The lines of the classes that sent since `before`; none of a function that sends in one class.
std::string class_lines(const NICFunctionStatus& before, const NICFunctionStatus& now,
                        double seconds) {
  const auto has_sent = [](const NICClassStatus& one) { return one.sent_packets != 0; };
  if (std::ranges::count_if(now.classes, has_sent) < 2) return "";
  std::string out;
  for (std::size_t i = 0; i < std::min(now.classes.size(), before.classes.size()); ++i) {
    const NICClassStatus &was = before.classes[i], &is = now.classes[i];
    if (is.sent_packets == was.sent_packets) continue;
    out += fmt::format("{:<50} {:>10.0f} {:>10.1f}\n", fmt::format("  class {}", is.traffic_class),
                       per_second(was.sent_packets, is.sent_packets, seconds),
                       8 * per_second(was.sent_bytes, is.sent_bytes, seconds) / 1e6);
  }
  return out;
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
  add_class_metric("verbena_nic_class_sent_packets_total", &NICClassStatus::sent_packets, status,
                   out);
  add_class_metric("verbena_nic_class_sent_bytes_total", &NICClassStatus::sent_bytes, status, out);
  return out;
}

std::string nic_table(const NICStatus& before, const NICStatus& now, Duration between) {
  std::string out =
      fmt::format("{:<16} {:<24} {:>8} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "FUNCTION", "ADDRESS",
                  "PROGRAMS", "SENT/S", "SENT Mb/s", "RECV/S", "RECV Mb/s", "REFUSED/S");
  const double seconds = std::max(static_cast<double>(between.ns()) / 1e9, 1e-9);
  for (const NICFunctionStatus& function : now) {
    const auto earlier = std::ranges::find(before, function.name, &NICFunctionStatus::name);
    const NICFunctionStatus& was = earlier == before.end() ? function : *earlier;
    const NICRates rates = nic_rates(was, function, seconds);
    out += fmt::format("{:<16} {:<24} {:>8} {:>10.0f} {:>10.1f} {:>10.0f} {:>10.1f} {:>10.0f}\n",
                       function.name, function.address, function.programs, rates.sent_packets,
                       rates.sent_bps / 1e6, rates.received_packets, rates.received_bps / 1e6,
                       rates.refused);
    out += class_lines(was, function, seconds);
  }
  return out;
}

}  // namespace verbena::cli
