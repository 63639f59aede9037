#include "cli/devices.h"

#include "cli/device_report.h"
#include "cli/where.h"
#include "host/adapter.h"

namespace verbena::cli {
namespace {

// The device is gone again when this returns: others are not disturbed.
DeviceReport report_on(const host::LocalAddress& address) {
  const auto adapter = host::Adapter::open(address);
  if (!adapter) return {address, {}, adapter.error().message};
  return {address, (*adapter)->device().config(), ""};
}

}  // namespace

Expected<DevicesOutcome> devices(const DevicesRequest& request) {
  const auto addresses = addresses_of(request.address);
  if (!addresses) return tl::unexpected(addresses.error());

  std::vector<DeviceReport> reports;
  std::string problem;
  for (const host::LocalAddress& address : *addresses) {
    reports.push_back(report_on(address));
    if (problem.empty() && !reports.back().problem.empty())
      problem = address.device_name + ": " + reports.back().problem;
  }
  const bool json = request.format == OutputFormat::kJSON;
  return DevicesOutcome{json ? to_json(reports) : to_text(reports), problem};
}

}  // namespace verbena::cli
