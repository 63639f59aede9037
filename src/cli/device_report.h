// DeviceReport: one device as `verbena devices` prints it, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "device/device_config.h"
#include "host/network/local_address.h"
#include "host/settings/link_kind.h"

namespace verbena::cli {

struct DeviceReport {
  host::LocalAddress address;
  DeviceConfig config;  // meaningful when it could be opened
  host::LinkKind link = host::LinkKind::kUDP;
  std::string problem;  // why the device cannot be opened; "": it was
};

[[nodiscard]] std::string to_text(const std::vector<DeviceReport>& reports);
[[nodiscard]] std::string to_json(const std::vector<DeviceReport>& reports);

}  // namespace verbena::cli
