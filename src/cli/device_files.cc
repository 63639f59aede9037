#include "cli/device_files.h"

#include <charconv>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "cli/guid_text.h"
#include "device/port/counter_table.h"
#include "device/port/identity.h"
#include "host/network/gid_table.h"
#include "host/network/link_rate.h"

namespace verbena::cli {
namespace {

constexpr const char* kClass = "/sys/class/infiniband";
constexpr const char* kVerbsClass = "/sys/class/infiniband_verbs";
constexpr const char* kDevices = "/sys/devices/virtual/infiniband";
constexpr int kVerbsMajor = 231, kFirstVerbsMinor = 192;  // Linux's infiniband_verbs
constexpr int kVerbsABI = 6, kMADABI = 5;                 // of the kernels that rdma-core speaks to

// Opens for reading and writing, and is a character device: all that programs ask of it, since
// verbs go through our library and not through it.
constexpr const char* kDoesNothing = "/dev/null";

class Files {
 public:
  void text(const std::string& path, std::string_view value) {
    files_.push_back({path, DeviceFileKind::kText, fmt::format("{}\n", value)});
  }
  void empty(const std::string& path) { files_.push_back({path, DeviceFileKind::kText, ""}); }
  void link(const std::string& path, const std::string& target) {
    files_.push_back({path, DeviceFileKind::kLink, target});
  }
  void folder(const std::string& path) { files_.push_back({path, DeviceFileKind::kFolder, ""}); }
  std::vector<DeviceFile> take() { return std::move(files_); }

 private:
  std::vector<DeviceFile> files_;
};

// Returns the GID in 16-bit groups, the most significant first.
std::string gid_text(const GID& gid) {
  std::string text;
  for (std::size_t i = 0; i < gid.bytes.size(); ++i)
    text += fmt::format("{}{:02x}", i > 0 && i % 2 == 0 ? ":" : "", gid.bytes[i]);
  return text;
}
std::string_view type_text(GIDType type) {
  return type == GIDType::kRoCEv2 ? "RoCE v2" : "IB/RoCE v1";
}

std::string number_of(const std::string& name) {
  return name.substr(name.find_last_not_of("0123456789") + 1);
}

// Adds the files of the virtual device's card: its vendor, its bus and its place in the machine.
void add_card(Files& files, const std::string& card, const host::LocalAddress& address,
              const Locality& locality) {
  files.text(card + "/vendor", fmt::format("{:#06x}", kVendorId & 0xffff));
  files.text(card + "/device", fmt::format("{:#06x}", kVendorPartId));
  files.text(card + "/numa_node", std::to_string(locality.numa_node));
  files.text(card + "/local_cpulist", locality.cpu_list);
  files.text(card + "/local_cpus", cpu_mask(locality.cpu_list));
  files.link(card + "/net/" + address.interface, "/sys/class/net/" + address.interface);
}

void add_gid(Files& files, const std::string& port, std::size_t index, const GIDEntry& entry,
             const std::string& interface) {
  files.text(fmt::format("{}/gids/{}", port, index), gid_text(entry.gid));
  files.text(fmt::format("{}/gid_attrs/types/{}", port, index), type_text(entry.type));
  files.text(fmt::format("{}/gid_attrs/ndevs/{}", port, index), interface);
}

void add_port(Files& files, const std::string& port, const host::LocalAddress& address,
              host::LinkKind link) {
  files.text(port + "/state", "4: ACTIVE");
  files.text(port + "/phys_state", "5: LinkUp");
  files.text(port + "/link_layer", "Ethernet");
  files.text(port + "/rate", host::rate_for(address.link_speed_mbps).to_string());
  files.text(port + "/cap_mask", "0x04010000");  // CM, IP-based GIDs
  for (const char* name : {"lid", "sm_lid"}) files.text(port + "/" + name, "0x0");
  for (const char* name : {"lid_mask_count", "sm_sl", "has_smi"})
    files.text(port + "/" + name, "0");
  files.text(port + "/pkeys/0", "0xffff");
  for_each_counter({}, [&](std::string_view name, CounterFolder folder, auto, auto) {
    files.empty(fmt::format("{}/{}/{}", port, name_of(folder), name));  // abi/paths/port_counter.h
  });
  const std::vector<GIDEntry> gids =
      host::gid_table(address, link, host::on_wire_from_environment());
  for (std::size_t i = 0; i < gids.size(); ++i) add_gid(files, port, i, gids[i], address.interface);
}

void add_device(Files& files, const std::string& device, const host::LocalAddress& address,
                host::LinkKind link) {
  files.text(device + "/node_type", link == host::LinkKind::kIWARP ? "4: RNIC" : "1: CA");
  files.text(device + "/node_guid", guid_text(address.node_guid));
  files.text(device + "/sys_image_guid", guid_text(address.node_guid));
  files.text(device + "/node_desc", address.device_name);
  files.text(device + "/fw_ver", kFirmwareVersion);
  files.text(device + "/hw_rev", fmt::format("{:#x}", kHardwareVersion));
  for (const char* name : {"hca_type", "board_id"}) files.text(device + "/" + name, "Verbena");
  add_port(files, device + "/ports/1", address, link);
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns -1 if the text is no number.
int number_in(std::string_view text) {
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

Locality locality_of(const std::string& interface) {
  const std::string card = "/sys/class/net/" + interface + "/device/";
  const std::string node = first_line(card + "numa_node");
  const std::string cpus = first_line(card + "local_cpulist");
  return {node.empty() ? -1 : number_in(node),
          cpus.empty() ? first_line("/sys/devices/system/cpu/online") : cpus};
}

std::string cpu_mask(const std::string& cpu_list) {
  constexpr int kWordBits = 32, kMaxCPU = 8191;
  std::vector<u32> words(1);
  std::istringstream ranges(cpu_list);
  for (std::string range; std::getline(ranges, range, ',');) {
    const std::size_t dash = range.find('-');
    const int first = number_in(range);
    const int last = dash == std::string::npos ? first : number_in(range.substr(dash + 1));
    if (first < 0 || last > kMaxCPU) continue;
    for (int cpu = first; cpu <= last; ++cpu) {
      const auto word = static_cast<std::size_t>(cpu / kWordBits);
      if (word >= words.size()) words.resize(word + 1);
      words[word] |= u32{1} << cpu % kWordBits;
    }
  }
  std::string text;
  for (auto word = words.rbegin(); word != words.rend(); ++word)
    text += fmt::format("{}{:08x}", text.empty() ? "" : ",", *word);
  return text;
}

std::vector<DeviceFile> files_of(const host::LocalAddress& address, host::LinkKind link,
                                 const Locality& locality) {
  Files files;
  const std::string& name = address.device_name;
  const std::string number = number_of(name), uverbs = "uverbs" + number;
  const std::string card = fmt::format("{}/{}", kDevices, name);
  const std::string device = fmt::format("{}/infiniband/{}", card, name);
  const std::string verbs = fmt::format("{}/infiniband_verbs/{}", card, uverbs);

  add_card(files, card, address, locality);
  add_device(files, device, address, link);
  files.text(verbs + "/ibdev", name);
  files.text(verbs + "/abi_version", "1");
  files.text(verbs + "/dev",
             fmt::format("{}:{}", kVerbsMajor, kFirstVerbsMinor + number_in(number)));
  for (const std::string& part : {device, verbs}) files.link(part + "/device", "../../../" + name);

  const std::string up = "../../devices/virtual/infiniband/" + name;
  files.link(fmt::format("{}/{}", kClass, name), fmt::format("{}/infiniband/{}", up, name));
  files.link(fmt::format("{}/{}", kVerbsClass, uverbs),
             fmt::format("{}/infiniband_verbs/{}", up, uverbs));
  files.link("/dev/infiniband/" + uverbs, kDoesNothing);
  return files.take();
}

std::vector<DeviceFile> common_files() {
  Files files;
  files.text(fmt::format("{}/abi_version", kVerbsClass), std::to_string(kVerbsABI));
  files.text("/sys/class/infiniband_mad/abi_version", std::to_string(kMADABI));
  files.link("/dev/infiniband/rdma_cm", kDoesNothing);
  return files.take();
}

}  // namespace verbena::cli
