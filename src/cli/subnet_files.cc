#include "cli/subnet_files.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "host/network/link_rate.h"

namespace verbena::cli {
namespace {

constexpr std::array<const char*, 5> kStates = {"0: NOP", "1: DOWN", "2: INIT", "3: ARMED",
                                                "4: ACTIVE"};
constexpr u8 kPolling = 2, kDisabled = 3, kLinkUp = 5;  // PortPhysicalState
constexpr u8 kFirstExtended = 16;  // of speeds: FDR, where the kernel's numbers go on

const char* physical_state_text(u8 state) {
  switch (state) {
    case kPolling: return "2: Polling";
    case kDisabled: return "3: Disabled";
    case kLinkUp: return "5: LinkUp";
    default: return "0: <unknown>";
  }
}

std::string rate_text(const host::FabricPortAttributes& port) {
  const u8 speed =
      port.ext_speed != 0 ? static_cast<u8>(kFirstExtended * port.ext_speed) : port.speed;
  return host::LinkRate{port.width, speed}.to_string();
}

// Returns the value in `n` 16-bit groups.
std::string groups_of(u64 value, u32 n) {
  std::string text;
  for (u32 i = n; i-- > 0;)
    text += fmt::format("{:04x}{}", value >> 16 * i & 0xffff, i == 0 ? "" : ":");
  return text;
}

}  // namespace

void show_subnet_port(std::vector<DeviceFile>& files, const std::string& device,
                      const host::FabricPortAttributes& port) {
  const std::map<std::string, std::string> texts = {
      {"/node_guid", groups_of(port.node_guid, 4)},
      {"/sys_image_guid", groups_of(port.node_guid, 4)},
      {"/ports/1/state", kStates[std::min<std::size_t>(port.state, kStates.size() - 1)]},
      {"/ports/1/phys_state", physical_state_text(port.physical_state)},
      {"/ports/1/link_layer", "InfiniBand"},
      {"/ports/1/rate", rate_text(port)},
      {"/ports/1/cap_mask", fmt::format("{:#010x}", port.capability_mask)},
      {"/ports/1/lid", fmt::format("{:#x}", port.lid)},
      {"/ports/1/sm_lid", fmt::format("{:#x}", port.sm_lid)},
      {"/ports/1/lid_mask_count", fmt::format("{}", port.lmc)},
      {"/ports/1/sm_sl", fmt::format("{}", port.sm_sl)},
      {"/ports/1/pkeys/0", fmt::format("{:#06x}", port.p_keys[0])},
      {"/ports/1/gids/0", groups_of(port.gid_prefix, 4) + ":" + groups_of(port.port_guid, 4)},
      {"/ports/1/gid_attrs/types/0", "IB/RoCE v1"}};
  const std::string folder = fmt::format("/infiniband/{}", device);
  const std::string port_folder = folder + "/ports/1/gid";
  std::erase_if(files, [&](const DeviceFile& file) {  // there is one GID, without an interface
    const std::size_t at = file.path.find(port_folder);
    return at != std::string::npos && !file.path.ends_with("/0");
  });
  for (DeviceFile& file : files) {
    const std::size_t at = file.path.rfind(folder + "/");
    if (at == std::string::npos) continue;
    const auto text = texts.find(file.path.substr(at + folder.size()));
    if (text != texts.end()) file.content = text->second + "\n";
  }
}

}  // namespace verbena::cli
