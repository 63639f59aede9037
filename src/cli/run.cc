#include "cli/run.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "abi/paths/tree.h"
#include "base/check.h"
#include "check/settings.h"
#include "cli/device_files.h"
#include "cli/fabric.h"
#include "cli/file_tree.h"
#include "cli/library_folder.h"
#include "cli/program.h"
#include "cli/subnet_files.h"
#include "cli/where.h"
#include "host/capture/capture_file.h"
#include "host/explain/explainer.h"
#include "host/links/fabric/address_map.h"
#include "host/nic/nic_protocol.h"
#include "host/settings/congestion_settings.h"
#include "host/settings/fault_settings.h"
#include "host/settings/link_kind.h"
#include "host/settings/retransmission_settings.h"

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kShareVariable = "VERBENA_SHARE";  // host/local/local_path.h

Expected<fs::path> find_loadable_library() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return failure(kExitCannot, "cannot read /proc/self/exe: is /proc mounted?");
  Expected<fs::path> folder =
      find_library_folder(self.parent_path(), VERBENA_LIBRARY_RELATIVE_PATHS);
  if (!folder) return folder;
  if (const Expected<void> loads = check_library_loads(*folder); !loads)
    return tl::unexpected(loads.error());
  return folder;
}

// Refuses a program that would run on something else than our device; warns where that may be so.
Expected<void> check_library_use(const fs::path& program) {
  switch (library_use(program)) {
    case LibraryUse::kLoads: return {};
    case LibraryUse::kPrivileged:
      return failure(kExitCannot,
                     fmt::format("{} gains privilege when executed, so the loader would ignore "
                                 "Verbena's library; run verbena inside it",
                                 program.string()));
    case LibraryUse::kOtherMachine:
      return failure(kExitCannot,
                     fmt::format("{} is built for another kind of machine than Verbena's library",
                                 program.string()));
    case LibraryUse::kStatic:
      fmt::print(stderr,
                 "verbena: warning: {} is statically linked and loads no libibverbs; only programs "
                 "that it starts can use the device\n",
                 program.string());
      return {};
  }
  CHECK_UNREACHABLE();
}

void set_environment(const fs::path& library_folder, const RunRequest& request) {
  const std::string path = library_path(library_folder, std::getenv("LD_LIBRARY_PATH"));
  setenv("LD_LIBRARY_PATH", path.c_str(), 1);
  if (!request.address.empty()) setenv(kAddressVariable, request.address.c_str(), 1);
  if (!request.faults.empty()) setenv(host::kFaultVariable, request.faults.c_str(), 1);
  if (!request.capture.empty()) setenv(host::kCaptureVariable, request.capture.c_str(), 1);
  if (!request.capture_limit.empty())
    setenv(host::kCaptureLimitVariable, request.capture_limit.c_str(), 1);
  if (!request.check.empty()) setenv(check::kVariable, request.check.c_str(), 1);
  if (!request.check_exit_code.empty())
    setenv(check::kExitCodeVariable, request.check_exit_code.c_str(), 1);
  if (!request.congestion.empty()) setenv(host::kCongestionVariable, request.congestion.c_str(), 1);
  if (!request.retransmission.empty())
    setenv(host::kRetransmissionVariable, request.retransmission.c_str(), 1);
  if (!request.link.empty()) setenv(host::kLinkVariable, request.link.c_str(), 1);
  if (!request.nic.empty()) setenv(host::kNICVariable, request.nic.c_str(), 1);
  if (!request.share.empty()) setenv(kShareVariable, request.share.c_str(), 1);
  if (!request.seed.empty()) setenv(host::kSeedVariable, request.seed.c_str(), 1);
  setenv(host::kExplainVariable, "1", 0);  // keeps the user's value
}

std::vector<DeviceFile> device_files(const std::vector<host::LocalAddress>& addresses,
                                     host::LinkKind link) {
  std::vector<DeviceFile> files = common_files();
  for (const host::LocalAddress& address : addresses) {
    std::vector<DeviceFile> more = files_of(address, link, locality_of(address.interface));
    files.insert(files.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  }
  return files;
}

Expected<void> show_files(const std::vector<host::LocalAddress>& addresses, host::LinkKind link,
                          const std::optional<host::FabricPortAttributes>& port,
                          const fs::path& library_folder) {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  const auto folder = make_tree_folder(error ? "/tmp" : parent);
  if (!folder) return tl::unexpected(folder.error());
  if (auto removed = remove_when_unused(*folder); !removed) {
    fs::remove(*folder, error);
    return removed;
  }
  std::vector<DeviceFile> files = device_files(addresses, link);
  if (port) show_subnet_port(files, addresses.front().device_name, *port);
  if (auto written = write_file_tree(*folder, files); !written) return written;
  setenv(abi::paths::kTreeVariable, folder->c_str(), 1);
  setenv("LD_PRELOAD", preloaded(library_folder, std::getenv("LD_PRELOAD")).c_str(), 1);
  return {};
}

Failure execute(const fs::path& program, const std::vector<std::string>& command) {
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  // execvp() searches PATH for a name without a slash, so the path always has one.
  const fs::path path = program.has_parent_path() ? program : "." / program;
  execvp(path.c_str(), argv.data());
  return {kExitNotExecutable,
          fmt::format("cannot execute {}: {}", program.string(), std::strerror(errno))};
}

// The program's only device is that host's. In the environment, so that all its programs are there.
Expected<std::vector<host::LocalAddress>> address_in_fabric(const host::FabricPlace& place) {
  const std::string address = GID::from_ipv4(host::fabric_address_of(place.host)).to_string();
  setenv(host::kFabricVariable, place.text().c_str(), 1);
  setenv(kAddressVariable, address.c_str(), 1);
  setenv(host::kLinkVariable, "udp", 1);
  unsetenv(host::kNICVariable);
  return addresses_of(address);
}

}  // namespace

Failure run(const RunRequest& request) {
  const Expected<fs::path> library_folder = find_loadable_library();
  if (!library_folder) return library_folder.error();

  const char* const search_path = std::getenv("PATH");
  const Expected<fs::path> program = find_program(
      request.command[0], search_path != nullptr ? search_path : "/usr/local/bin:/usr/bin:/bin");
  if (!program) return program.error();
  if (const Expected<void> use = check_library_use(*program); !use) return use.error();

  set_environment(*library_folder, request);
  std::optional<ClaimedHost> claimed;
  if (!request.fabric.empty()) {
    Expected<ClaimedHost> place = claim_fabric_host(request);
    if (!place) return place.error();
    claimed = *place;
    if (const auto map = host::AddressMap::from_environment(); !map)
      return {kExitCannot, map.error().message};
  }
  const auto addresses =
      claimed ? address_in_fabric(claimed->place) : addresses_of(request.address);
  if (!addresses) return addresses.error();
  const auto link = host::link_kind_from_environment();
  if (!link) return {kExitCannot, link.error().message};
  if (const Expected<void> shown =
          show_files(*addresses, *link, claimed ? claimed->port : std::nullopt, *library_folder);
      !shown)
    fmt::print(stderr,
               "verbena: warning: {}; programs that look for devices in /dev and /sys find none\n",
               shown.error().message);
  return execute(*program, request.command);
}

}  // namespace verbena::cli
