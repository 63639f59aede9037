// The files of a device that describe a port on an InfiniBand subnet, as it is when a program
// starts.
#pragma once

#include <string>
#include <vector>

#include "cli/device_files.h"
#include "host/links/fabric/fabric_protocol.h"

namespace verbena::cli {

// Replaces the port in the files that files_of() returned for the device of that name.
void show_subnet_port(std::vector<DeviceFile>& files, const std::string& device,
                      const host::FabricPortAttributes& port);

}  // namespace verbena::cli
