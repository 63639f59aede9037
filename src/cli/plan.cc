#include "cli/plan.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/check.h"
#include "fabric/scenario/units.h"
#include "faults/values.h"
#include "jobs/host_path/table.h"
#include "jobs/plan/catalogue.h"
#include "jobs/plan/eos.h"
#include "jobs/plan/nic_script.h"
#include "jobs/plan/nvue.h"
#include "jobs/plan/plan_text.h"
#include "jobs/plan/sonic.h"

namespace verbena::cli {
namespace {

constexpr u64 kMostMetres = 100'000, kMostPorts = 4096;
constexpr Rate kLeast = gbps(1), kMost = gbps(3200);

// "30" or "30m"
std::optional<u64> metres(std::string text) {
  if (text.ends_with('m')) text.pop_back();
  const std::optional<u64> value = faults::parse_number(text);
  return value && *value <= kMostMetres ? value : std::nullopt;
}

bool is_mtu(u64 bytes) {
  return bytes == 256 || bytes == 512 || bytes == 1024 || bytes == 2048 || bytes == 4096;
}

// Returns true if the name needs no quoting in JSON and in configurations: Ethernet0, Ethernet1/1,
// Port-Channel7.
bool names_interface(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '-' || c == '_' || c == '.';
  });
}

std::string watts_of(const jobs::Range& watts, std::string_view source) {
  return fmt::format("{:g} .. {:g} W: {}", watts.low, watts.high, source);
}

std::string price_of(const jobs::Range& dollars, u32 year, std::string_view source) {
  return fmt::format("{} of {}: {}", dollars_text(dollars), year, source);
}

std::string catalogue() {
  constexpr std::string_view kUnder = "                       ";
  std::string text = "NICs\n";
  for (const jobs::NICModel& nic : jobs::nic_models())
    text += fmt::format("  {:<20} {:<48} {:<14} {}\n{}{}\n{}{}\n{}{}\n", nic.name, nic.ports,
                        nic.host, nic.technologies, kUnder, nic.source, kUnder,
                        watts_of(nic.watts, nic.watts_source), kUnder,
                        price_of(nic.dollars, nic.year, nic.dollars_source));
  text += "\nSwitches\n";
  for (const jobs::SwitchModel& model : jobs::switch_models())
    text += fmt::format("  {:<20} {} x {:<43} {}\n{}{}\n{}{}\n{}{}\n", model.name, model.ports,
                        fabric::rate_text(static_cast<double>(model.port_rate.bps())),
                        model.technologies, kUnder, model.source, kUnder,
                        watts_of(model.watts, model.watts_source), kUnder,
                        price_of(model.dollars, model.year, model.dollars_source));
  text += "\nCables, with what is at both ends\n";
  for (const jobs::CableModel& cable : jobs::cable_models())
    text += fmt::format("  {:<34} up to {:>4} m, {:g} .. {:g} W; {}\n", cable.name,
                        cable.most_metres, cable.watts.low, cable.watts.high,
                        price_of(cable.dollars, cable.year, cable.source));
  return text + "\nPrices are ranges for few pieces: check your quote.\n";
}

}  // namespace

tl::expected<jobs::TuningRequest, std::string> parse_tuning(const TuningWords& words) {
  jobs::TuningRequest request;
  if (!words.rate.empty()) {
    const std::optional<Rate> rate = fabric::rate_of(words.rate);
    if (!rate || *rate < kLeast || *rate > kMost)
      return tl::unexpected(
          fmt::format("--rate {}: write it as 400Gbps, 1 Gb/s to 3.2 Tb/s", words.rate));
    request.rate = *rate;
  }
  if (!words.cable.empty()) {
    const std::optional<u64> length = metres(words.cable);
    if (!length)
      return tl::unexpected(fmt::format("--cable {}: write it as 30m, up to 100 km", words.cable));
    request.cable_metres = static_cast<u32>(*length);
  }
  if (!words.mtu.empty()) {
    const std::optional<u64> mtu = faults::parse_number(words.mtu);
    if (!mtu || !is_mtu(*mtu))
      return tl::unexpected(
          fmt::format("--mtu {} is none of 256, 512, 1024, 2048 and 4096", words.mtu));
    request.mtu = static_cast<u32>(*mtu);
  }
  if (!words.buffer.empty()) {
    const std::optional<u64> bytes = fabric::bytes_of(words.buffer);
    if (!bytes || *bytes == 0)
      return tl::unexpected(fmt::format("--buffer {}: write it as 64MiB", words.buffer));
    request.buffer_bytes = *bytes;
  }
  if (!words.ports.empty()) {
    const std::optional<u64> ports = faults::parse_number(words.ports);
    if (!ports || *ports == 0 || *ports > kMostPorts)
      return tl::unexpected(fmt::format("--ports {} is none of 1 .. {}", words.ports, kMostPorts));
    request.switch_ports = static_cast<u32>(*ports);
  }
  return request;
}

tl::expected<std::vector<std::string>, std::string> parse_interfaces(std::string_view text) {
  std::vector<std::string> names;
  while (true) {
    const std::string_view name = text.substr(0, text.find(','));
    if (!names_interface(name))
      return tl::unexpected(
          fmt::format("--interfaces: '{}' is none; write them as Ethernet0,Ethernet8", name));
    names.emplace_back(name);
    if (name.size() == text.size()) return names;
    text.remove_prefix(name.size() + 1);
  }
}

std::string plan(const PlanRequest& request) {
  const jobs::TuningRequest& tuning = request.tuning;
  switch (request.print) {
    case PlanRequest::Print::kTuning: return text_of(tuning, tune(tuning));
    case PlanRequest::Print::kSONiC: return sonic_config(tuning, tune(tuning), request.interfaces);
    case PlanRequest::Print::kNVUE: return nvue_commands(tuning, tune(tuning));
    case PlanRequest::Print::kEOS: return eos_config(tuning, tune(tuning), request.interfaces);
    case PlanRequest::Print::kNIC: return nic_script(tuning, tune(tuning));
    case PlanRequest::Print::kCatalogue: return catalogue();
    case PlanRequest::Print::kHostPath: return jobs::host_path_table(jobs::HostPathConfig{}.cores);
  }
  CHECK_UNREACHABLE();
}

}  // namespace verbena::cli
