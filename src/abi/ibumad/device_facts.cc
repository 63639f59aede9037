#include "abi/ibumad/device_facts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "abi/ibumad/port_table.h"

namespace verbena::abi::umad {
namespace {

using std::filesystem::path;

constexpr const char* kDevices = "/sys/class/infiniband";

// In Gb/s, as the kernel's `rate` says it. Lanes of 2.5 Gb/s and their multiples.
u32 rate_of(const host::FabricPortAttributes& port) {
  const u32 lanes = port.width == 1 ? 1 : port.width == 2 ? 4 : port.width == 4 ? 8 : 12;
  switch (port.ext_speed) {
    case 1: return lanes * 14;
    case 2: return lanes * 25;
    case 4: return lanes * 50;
    case 8: return lanes * 100;
    default: return lanes * 5 * port.speed / 2;
  }
}

DeviceFacts facts_of(const host::FabricPortAttributes& port) {
  return {.name = "verbena0",
          .firmware = "1",
          .type = "Verbena",
          .hardware = "0",
          .node_type = 1,
          .node_guid = port.node_guid,
          .system_guid = port.node_guid,
          .ports = {{.number = kOnlyPort,
                     .link_layer = "InfiniBand",
                     .lid = port.lid,
                     .lmc = port.lmc,
                     .sm_lid = port.sm_lid,
                     .sm_sl = port.sm_sl,
                     .state = port.state,
                     .physical_state = port.physical_state,
                     .rate = rate_of(port),
                     .capability_mask = port.capability_mask,
                     .gid_prefix = port.gid_prefix,
                     .guid = port.port_guid,
                     .p_keys = {port.p_keys.begin(), port.p_keys.end()}}}};
}

// The first line; empty where there is no such file.
std::string line_of(const path& file) {
  std::string line;
  std::getline(std::ifstream(file), line);
  return line;
}

// The number that a file starts with, as "4: ACTIVE" and "0x04010000" do; 0 where there is none.
u32 number_of(const path& file) {
  return static_cast<u32>(std::strtoul(line_of(file).c_str(), nullptr, 0));
}

// "de08:ac73:fcf5:b9eb", and the same with more groups, of which `first` is where this starts.
u64 guid_of(const path& file, std::size_t first = 0) {
  constexpr std::size_t kGroup = 5;  // with its colon
  std::string digits = line_of(file);
  if (digits.size() < first * kGroup) return 0;
  digits = digits.substr(first * kGroup, 4 * kGroup - 1);
  std::erase(digits, ':');
  return std::strtoull(digits.c_str(), nullptr, 16);
}

std::vector<path> entries_of(const path& folder) {
  std::vector<path> entries;
  std::error_code ignored;  // an absent folder has none
  for (std::filesystem::directory_iterator entry(folder, ignored), end; entry != end;
       entry.increment(ignored))
    entries.push_back(folder / entry->path().filename());
  std::ranges::sort(entries);
  return entries;
}

PortFacts port_in(const path& folder) {
  PortFacts port{.number = std::atoi(folder.filename().c_str()),
                 .link_layer = line_of(folder / "link_layer"),
                 .lid = number_of(folder / "lid"),
                 .lmc = number_of(folder / "lid_mask_count"),
                 .sm_lid = number_of(folder / "sm_lid"),
                 .sm_sl = number_of(folder / "sm_sl"),
                 .state = number_of(folder / "state"),
                 .physical_state = number_of(folder / "phys_state"),
                 .rate = number_of(folder / "rate"),
                 .capability_mask = number_of(folder / "cap_mask"),
                 .gid_prefix = guid_of(folder / "gids" / "0"),
                 .guid = guid_of(folder / "gids" / "0", 4),
                 .p_keys = {}};
  const std::size_t p_keys = entries_of(folder / "pkeys").size();
  for (std::size_t i = 0; i < p_keys; ++i)
    port.p_keys.push_back(static_cast<u16>(number_of(folder / "pkeys" / std::to_string(i))));
  return port;
}

DeviceFacts device_in(const path& folder) {
  DeviceFacts device{.name = folder.filename(),
                     .firmware = line_of(folder / "fw_ver"),
                     .type = line_of(folder / "hca_type"),
                     .hardware = line_of(folder / "hw_rev"),
                     .node_type = static_cast<u8>(number_of(folder / "node_type")),
                     .node_guid = guid_of(folder / "node_guid"),
                     .system_guid = guid_of(folder / "sys_image_guid"),
                     .ports = {}};
  for (const path& port : entries_of(folder / "ports")) device.ports.push_back(port_in(port));
  std::ranges::sort(device.ports, {}, &PortFacts::number);
  return device;
}

}  // namespace

std::vector<DeviceFacts> devices() {
  if (const auto attributes = own_attributes()) return {facts_of(*attributes)};
  std::vector<DeviceFacts> all;
  for (const path& folder : entries_of(kDevices)) all.push_back(device_in(folder));
  return all;
}

}  // namespace verbena::abi::umad
