#include "cli/devices.h"

#include "cli/device_report.h"
#include "cli/where.h"
#include "host/adapter.h"

namespace verbena::cli {
namespace {

// The device is gone again when this returns: others are not disturbed.
DeviceReport report_on(const host::LocalAddress& address, host::LinkKind link) {
  const auto adapter = host::Adapter::open(address);
  if (!adapter) return {address, {}, link, adapter.error().message};
  return {address, (*adapter)->device().config(), link, ""};
}

}  // namespace

Expected<DevicesOutcome> devices(const DevicesRequest& request) {
  const auto addresses = addresses_of(request.address);
  if (!addresses) return tl::unexpected(addresses.error());
  const auto link = host::link_kind_from_environment();
  if (!link) return failure(kExitCannot, link.error().message);

  std::vector<DeviceReport> reports;
  std::string problem;
  for (const host::LocalAddress& address : *addresses) {
    reports.push_back(report_on(address, *link));
    if (problem.empty() && !reports.back().problem.empty())
      problem = address.device_name + ": " + reports.back().problem;
  }
  const bool json = request.format == OutputFormat::kJSON;
  return DevicesOutcome{json ? to_json(reports) : to_text(reports), problem};
}

}  // namespace verbena::cli
