// The files that a kernel shows of RDMA devices, for ours: programs look there for what verbs do
// not tell (which devices there are, on which NUMA node, of which type a GID is). Linux's
// Documentation/ABI/stable/sysfs-class-infiniband.
#pragma once

#include <string>
#include <vector>

#include "host/network/local_address.h"
#include "host/settings/link_kind.h"

namespace verbena::cli {

enum class DeviceFileKind { kText, kLink, kFolder };

struct DeviceFile {
  std::string path;  // absolute, as programs know it
  DeviceFileKind kind = DeviceFileKind::kText;
  std::string content;  // of a text, with the newline at its end; of a link: where it points
};

// Locality: the NUMA node and the processors that are near to a device.
struct Locality {
  int numa_node = -1;    // -1: not known, or there is only one
  std::string cpu_list;  // "0-3,8"
};

// Returns the locality of the interface's card, or of the machine if the interface has no card.
[[nodiscard]] Locality locality_of(const std::string& interface);

// A list of processors as a mask in words of 32 bits: "0-3,33" -> "00000002,0000000f".
[[nodiscard]] std::string cpu_mask(const std::string& cpu_list);

// The files of one device, and those that are there once for all devices.
[[nodiscard]] std::vector<DeviceFile> files_of(const host::LocalAddress& address,
                                               host::LinkKind link, const Locality& locality);
[[nodiscard]] std::vector<DeviceFile> common_files();

}  // namespace verbena::cli
