#include "cli/doctor.h"

#include <cstdlib>

#include <fmt/format.h>

#include "cli/doctor_device.h"
#include "cli/doctor_machine.h"
#include "cli/doctor_peer.h"
#include "cli/doctor_programs.h"
#include "cli/stop_signal.h"
#include "cli/where.h"
#include "host/doctor/prober.h"

namespace verbena::cli {
namespace {

std::string why_chosen(const DoctorRequest& request, const host::LocalAddress& address) {
  if (!request.address.empty()) return "as --address says";
  const char* const variable = std::getenv(kAddressVariable);
  if (variable != nullptr && *variable != '\0') return fmt::format("as {} says", kAddressVariable);
  const auto table = host::InterfaceTable::read();
  if (table && table->default_route_interface == address.interface)
    return "of the interface of the default route";
  return address.interface == "lo" ? "since no other interface is up"
                                   : "of the first interface that is up: there is no default route";
}

void append(Findings& to, Findings more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

Findings examine(const DoctorRequest& request) {
  Findings findings;
  const auto addresses = addresses_of(request.address);
  if (!addresses) {
    findings.push_back({Verdict::kProblem, "address", addresses.error().message,
                        "`ip address` lists what there is; choose one by --address or "
                        "VERBENA_ADDRESS"});
  } else {
    for (const host::LocalAddress& address : *addresses)
      append(findings, examine_device(address, why_chosen(request, address)));
  }
  append(findings, examine_machine());
  findings.push_back(examine_programs("/proc"));
  if (addresses && !request.peer.empty()) append(findings, examine_peer(*addresses, request.peer));
  return findings;
}

Expected<void> listen_for_doctors(const DoctorRequest& request, const Print& print) {
  const auto addresses = addresses_of(request.address);
  if (!addresses) return tl::unexpected(addresses.error());
  const StopSignal stop;
  const auto prober = host::Prober::open(addresses->front());
  if (!prober) return failure(kExitCannot, prober.error().message);
  const std::string own = addresses->front().all().front().to_string();
  if (!print(fmt::format("answering on {}: verbena doctor {}\n", own, own)))
    return failure(kExitCannot, "cannot write to standard output");
  (*prober)->serve(stop.fd(), [last = GID{}, &print](const GID& asker) mutable {
    if (asker == last) return;
    last = asker;
    (void)print(fmt::format("asked by {}\n", asker.to_string()));
  });
  return {};
}

}  // namespace verbena::cli
