#include "cli/device_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "cli/guid_text.h"

namespace verbena::cli {
namespace {

std::string_view version_text(GIDType type) {
  switch (type) {
    case GIDType::kRoCEv1: return "RoCE v1";
    case GIDType::kRoCEv2: return "RoCE v2";
    case GIDType::kInfiniBand: return "IB/RoCE v1";  // as the kernel has it in sysfs
  }
  CHECK_UNREACHABLE();
}

std::vector<std::string> ip_addresses(const host::LocalAddress& address) {
  std::vector<std::string> texts;
  for (const GID& gid : address.all()) texts.push_back(gid.to_string());
  return texts;
}

std::string speed_text(u64 mbps) { return mbps == 0 ? "" : fmt::format(", {} Mb/s", mbps); }

std::string text_of(const DeviceReport& report) {
  const host::LocalAddress& address = report.address;
  std::string text = fmt::format("{}\n", address.device_name);
  const auto line = [&text](std::string_view name, std::string_view value) {
    text += fmt::format("  {:<12}{}\n", name, value);
  };
  line("interface", fmt::format("{}, MTU {}{}", address.interface, address.mtu,
                                speed_text(address.link_speed_mbps)));
  line("addresses", fmt::format("{}", fmt::join(ip_addresses(address), ", ")));
  line("node GUID", guid_text(address.node_guid));
  if (!report.problem.empty()) {
    line("port 1", "down: " + report.problem);
    return text;
  }
  line("port 1", fmt::format("active, Ethernet, path MTU {}", bytes(report.config.active_mtu)));
  line("link", name_of(report.link));
  line("UDP 4791", "can be used");
  for (std::size_t i = 0; i < report.config.gids.size(); ++i) {
    const GIDEntry& entry = report.config.gids[i];
    line(i == 0 ? "GIDs" : "",
         fmt::format("{}  {:<8} {}", i, version_text(entry.type), entry.gid.to_string()));
  }
  return text;
}

nlohmann::ordered_json json_of(const DeviceReport& report) {
  const host::LocalAddress& address = report.address;
  const bool usable = report.problem.empty();
  nlohmann::ordered_json port = {{"number", 1},
                                 {"state", usable ? "active" : "down"},
                                 {"link_layer", "Ethernet"},
                                 {"link", name_of(report.link)},
                                 {"udp_port", 4791}};
  if (usable) port["path_mtu"] = bytes(report.config.active_mtu);
  if (!usable) port["problem"] = report.problem;
  if (address.link_speed_mbps != 0) port["speed_mbps"] = address.link_speed_mbps;

  nlohmann::ordered_json gids = nlohmann::ordered_json::array();
  for (std::size_t i = 0; usable && i < report.config.gids.size(); ++i) {
    const GIDEntry& entry = report.config.gids[i];
    gids.push_back(
        {{"index", i}, {"gid", entry.gid.to_string()}, {"type", version_text(entry.type)}});
  }
  return {{"device", address.device_name},
          {"interface", address.interface},
          {"interface_mtu", address.mtu},
          {"addresses", ip_addresses(address)},
          {"node_guid", guid_text(address.node_guid)},
          {"port", port},
          {"gids", gids}};
}

}  // namespace

std::string to_text(const std::vector<DeviceReport>& reports) {
  std::string text;
  for (const DeviceReport& report : reports) text += text_of(report);
  return text;
}

std::string to_json(const std::vector<DeviceReport>& reports) {
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  for (const DeviceReport& report : reports) devices.push_back(json_of(report));
  return devices.dump(2) + "\n";
}

}  // namespace verbena::cli
