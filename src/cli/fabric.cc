#include "cli/fabric.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "cli/sim_job.h"
#include "cli/sim_scenario.h"
#include "cli/stop_signal.h"
#include "cli/text_file.h"
#include "live/fabric_server.h"

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;
using live::FabricServerConfig;

constexpr std::string_view kReady = "ready";
constexpr u32 kStartTries = 20;  // while a server ends and another begins
constexpr auto kBetweenTries = std::chrono::milliseconds(100);
constexpr u32 kListedHosts = 16;

u64 hash_of(std::string_view text) {
  u64 hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<u8>(c)) * 0x100000001b3;
  return hash;
}

// One fabric for each file.
Expected<std::string> name_of_server(const std::string& path) {
  std::error_code error;
  const fs::path file = fs::canonical(path, error);
  if (error) return failure(kExitCannot, fmt::format("cannot read {}: {}", path, error.message()));
  return fmt::format("{:016x}", hash_of(file.string()));
}

Expected<fabric::Scenario> read_fabric_scenario(const std::string& path,
                                                const std::vector<fabric::Setting>& settings) {
  if (fs::is_regular_file(path) && is_job_file(path))
    return failure(kExitCannot, fmt::format("{} is a job; a fabric takes a scenario", path));
  Expected<fabric::Scenario> scenario =
      read_scenario_file(path, settings, fabric::ScenarioUse::kLiveFabric);
  if (!scenario) return scenario;
  if (const std::string mistake = fabric::LiveFabric::mistake_in(*scenario); !mistake.empty())
    return failure(kExitCannot, fmt::format("{}: {}", path, mistake));
  return scenario;
}

std::string greeting(const FabricRequest& request, const fabric::Plan& plan) {
  std::string text = fmt::format("fabric of {}: {} hosts, 1 : {}; ends with Ctrl-C\n",
                                 request.scenario, plan.hosts.size(), request.scale);
  for (u32 host = 0; host < std::min<std::size_t>(plan.hosts.size(), kListedHosts); ++host)
    text += fmt::format("  --as {:<6} {}\n", plan.names[plan.hosts[host]],
                        GID::from_ipv4(host::fabric_address_of(host)).to_string());
  return text;
}

void leave_terminal() {
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, fd);
  ::close(nowhere);
  if (::chdir("/") != 0) return;  // then the server stays in its folder
}

// --- for run

// Runs in the child, which becomes the server. The server reports on `answer` whether it started.
[[noreturn]] void become_server(const RunRequest& request, int answer) {
  ::setsid();
  ::dup2(answer, STDOUT_FILENO);
  ::dup2(answer, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0u, 0);  // closes descriptors whose end others wait for
  const std::string scale =
      std::to_string(request.scale.value_or(FabricServerConfig::kDefaultScale));
  ::execl("/proc/self/exe", "verbena", "fabric", request.fabric.c_str(), "--scale", scale.c_str(),
          "--background", static_cast<char*>(nullptr));
  ::_exit(kExitCannot);
}

// Returns the server's output up to the end of its first line.
std::string read_line(int fd) {
  std::string line;
  for (char c = 0; ::read(fd, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

Expected<void> start_server(const RunRequest& request) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failure(kExitCannot, std::strerror(errno));
  const host::Descriptor answer(ends[0]);
  host::Descriptor question(ends[1]);
  // Its parent ends at once, so that it is nobody's child.
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::fork() == 0) become_server(request, question.get());
    ::_exit(0);
  }
  question.reset();
  if (pid < 0) return failure(kExitCannot, std::strerror(errno));
  (void)::waitpid(pid, nullptr, 0);
  const std::string line = read_line(answer.get());
  if (line == kReady) return {};
  const std::string_view prefix = "verbena: ";
  return failure(kExitCannot, line.starts_with(prefix) ? line.substr(prefix.size())
                              : line.empty()           ? "the fabric's server could not be started"
                                                       : line);
}

Expected<host::Descriptor> connect(const RunRequest& request, const std::string& name) {
  for (u32 i = 0; i < kStartTries; ++i) {
    host::Expected<host::Descriptor> socket = host::connect_to_fabric(name);
    if (socket) return std::move(*socket);
    if (socket.error().error != ECONNREFUSED) return failure(kExitCannot, socket.error().message);
    if (const Expected<void> started = start_server(request); !started)
      return tl::unexpected(started.error());
  }
  return failure(kExitCannot, "the fabric's server ends as soon as it is started");
}

Expected<std::string> host_asked_for(const RunRequest& request) {
  if (!request.as.empty()) return request.as;
  // Open MPI's, MPICH's and Slurm's
  for (const char* const rank : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"})
    if (const char* const value = std::getenv(rank); value != nullptr && *value != 0)
      return std::string(value);
  return failure(kExitCannot, "--fabric needs --as HOST: which host of the scenario PROGRAM is on");
}

host::FabricChange to_fabric(FabricRequest::What what) {
  switch (what) {
    case FabricRequest::What::kUnplug: return host::FabricChange::kUnplug;
    case FabricRequest::What::kPlug: return host::FabricChange::kPlug;
    case FabricRequest::What::kPowerOff: return host::FabricChange::kPowerOff;
    case FabricRequest::What::kPowerOn: return host::FabricChange::kPowerOn;
    case FabricRequest::What::kErrorRate: return host::FabricChange::kErrorRate;
    case FabricRequest::What::kOverrun: return host::FabricChange::kOverrun;
    case FabricRequest::What::kCreditStall: return host::FabricChange::kCreditStall;
  }
  CHECK_UNREACHABLE();
}

// Changes cables in the running fabric.
Expected<void> change_cables(const FabricRequest& request, const std::string& server) {
  for (const FabricRequest::Change& change : request.changes) {
    host::FabricCable cable{.change = to_fabric(change.what), .error_rate = change.error_rate};
    if (change.name.size() >= cable.name.size())
      return failure(kExitCannot, fmt::format("there is no link or node {}", change.name));
    change.name.copy(cable.name.data(), cable.name.size() - 1);
    const host::Expected<host::Descriptor> socket = host::connect_to_fabric(server);
    if (!socket)
      return failure(kExitCannot, socket.error().error == ECONNREFUSED
                                      ? fmt::format("no fabric of {} runs", request.scenario)
                                      : socket.error().message);
    const auto changed = host::ask_fabric<host::FabricCableChanged>(socket->get(), cable);
    if (!changed && changed.error().error == ECONNRESET)
      return failure(kExitCannot, "cables are of technology infiniband");
    if (!changed) return failure(kExitCannot, changed.error().message);
  }
  return {};
}

}  // namespace

Expected<void> fabric(const FabricRequest& request,
                      const std::function<bool(std::string_view)>& print) {
  const Expected<std::string> name = name_of_server(request.scenario);
  if (!name) return tl::unexpected(name.error());
  if (!request.changes.empty()) return change_cables(request, *name);
  const Expected<fabric::Scenario> scenario =
      read_fabric_scenario(request.scenario, request.settings);
  if (!scenario) return tl::unexpected(scenario.error());
  const Expected<std::string> file = read_text(request.scenario);
  if (!file) return tl::unexpected(file.error());
  const StopSignal stop;
  fabric::LiveFabric network(*scenario);
  if (!network.mistake().empty()) return failure(kExitCannot, network.mistake());
  host::Expected<host::Descriptor> listening = host::listen_as_fabric(*name);
  const bool in_background = request.run == FabricRequest::Run::kInBackground;
  if (!listening && listening.error().error == EADDRINUSE && in_background) {
    (void)print(fmt::format("{}\n", kReady));  // another was faster
    return {};
  }
  if (!listening)
    return failure(kExitCannot, listening.error().error == EADDRINUSE
                                    ? fmt::format("the fabric of {} runs already", request.scenario)
                                    : listening.error().message);
  live::FabricServer server(network,
                            {.scale = request.scale,
                             .scenario_hash = hash_of(*file),
                             .life = in_background ? FabricServerConfig::Life::kUntilTheLastLeaves
                                                   : FabricServerConfig::Life::kUntilStopped},
                            std::move(*listening));
  if (!print(in_background ? fmt::format("{}\n", kReady) : greeting(request, scenario->plan)))
    return failure(kExitCannot, "cannot write to standard output");
  if (in_background) leave_terminal();
  server.run(stop.fd());
  if (!print(server.text())) return failure(kExitCannot, "cannot write to standard output");
  return {};
}

Expected<ClaimedHost> claim_fabric_host(const RunRequest& request) {
  const Expected<std::string> name = name_of_server(request.fabric);
  if (!name) return tl::unexpected(name.error());
  const Expected<std::string> file = read_text(request.fabric);
  if (!file) return tl::unexpected(file.error());
  const Expected<std::string> host = host_asked_for(request);
  if (!host) return tl::unexpected(host.error());
  host::FabricClaim claim{.scenario = hash_of(*file), .scale = request.scale.value_or(0)};
  if (host->size() >= claim.host.size())
    return failure(kExitCannot, fmt::format("--as {}: there is no such host", *host));
  host->copy(claim.host.data(), claim.host.size() - 1);
  for (u32 i = 0; i < kStartTries; ++i) {
    Expected<host::Descriptor> socket = connect(request, *name);
    if (!socket) return tl::unexpected(socket.error());
    const auto claimed = host::ask_fabric<host::FabricClaimed>(socket->get(), claim);
    if (!claimed && (claimed.error().error == ECONNRESET || claimed.error().error == EPIPE)) {
      std::this_thread::sleep_for(kBetweenTries);  // it was about to end
      continue;
    }
    if (!claimed)
      return failure(kExitCannot, fmt::format("{}: {}", request.fabric, claimed.error().message));
    (void)::dup(socket->get());  // without FD_CLOEXEC: PROGRAM's
    return ClaimedHost{{.name = *name, .host = claimed->host, .claim = claimed->claim},
                       claimed->is_infiniband ? std::optional(claimed->port) : std::nullopt};
  }
  return failure(kExitCannot, "the fabric's server ends as soon as it is started");
}

}  // namespace verbena::cli
