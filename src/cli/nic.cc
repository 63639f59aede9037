#include "cli/nic.h"

#include <signal.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/check.h"
#include "cli/nic_counters.h"
#include "cli/nic_file.h"
#include "cli/stop_signal.h"
#include "cli/terminal.h"
#include "cli/text_file.h"
#include "host/nic/nic_server.h"
#include "host/os/clock.h"

namespace verbena::cli {
namespace {

constexpr Duration kNICTopInterval = sec(1);
const std::string kClearScreen = "\x1b[H\x1b[2J";

std::atomic<bool> wants_reload{false};

void on_hangup(int) { wants_reload.store(true); }

Expected<host::NICConfig> read_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    return failure(kExitCannot, path + ": " + std::strerror(errno));
  const Expected<std::string> text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  return read_nic_config(*text, path);
}

Expected<std::string> socket_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) return path;
  const Expected<host::NICConfig> config = read_file(path);
  if (!config) return tl::unexpected(config.error());
  return config->socket;
}

Expected<std::string> nic_status_text(const std::string& socket) {
  const auto status = host::status_of_nic(socket);
  if (!status) return failure(kExitCannot, status.error().message);
  return *status;
}

Expected<void> print_nic_text(const std::string& text, const Print& print) {
  if (!print(text)) return failure(kExitCannot, "cannot write to standard output");
  return {};
}

Expected<void> print_status(const std::string& socket, const Print& print) {
  const Expected<std::string> status = nic_status_text(socket);
  if (!status) return tl::unexpected(status.error());
  return print_nic_text(*status, print);
}

Expected<NICStatus> nic_status(const std::string& socket) {
  const Expected<std::string> status = nic_status_text(socket);
  if (!status) return tl::unexpected(status.error());
  return read_nic_status(*status);
}

Expected<void> print_metrics(const std::string& socket, const Print& print) {
  const Expected<NICStatus> status = nic_status(socket);
  if (!status) return tl::unexpected(status.error());
  return print_nic_text(nic_metrics(*status), print);
}

// Prints a table each second: once where the output is no terminal.
Expected<void> print_top(const std::string& socket, const Print& print) {
  const StopSignal stop;
  const bool once = !Terminal::is_one();
  Expected<NICStatus> before = nic_status(socket);
  if (!before) return tl::unexpected(before.error());
  Time then = host::monotonic_now();
  while (!stop.wait(kNICTopInterval)) {
    Expected<NICStatus> status = nic_status(socket);
    if (!status) return tl::unexpected(status.error());
    const Time now = host::monotonic_now();
    const std::string table = nic_table(*before, *status, now - then);
    const Expected<void> printed = print_nic_text(once ? table : kClearScreen + table, print);
    if (!printed || once) return printed;
    before = std::move(status);
    then = now;
  }
  return {};
}

Expected<void> inspect(const NICRequest& request, const Print& print) {
  const Expected<std::string> socket = socket_of(request.path);
  if (!socket) return tl::unexpected(socket.error());
  switch (request.action) {
    case NICRequest::Action::kRun: break;
    case NICRequest::Action::kStatus: return print_status(*socket, print);
    case NICRequest::Action::kMetrics: return print_metrics(*socket, print);
    case NICRequest::Action::kTop: return print_top(*socket, print);
  }
  CHECK_UNREACHABLE();
}

// If the new file has an error, the NIC keeps its configuration.
void reload(host::NICServer& server, const std::string& path) {
  const Expected<host::NICConfig> config = read_file(path);
  const auto taken = config ? server.reconfigure(*config)
                            : host::Expected<void>(host::failure(EINVAL, config.error().message));
  if (!taken) fmt::print(stderr, "verbena nic: nothing has changed: {}\n", taken.error().message);
}

}  // namespace

Expected<void> nic(const NICRequest& request, const Print& print) {
  if (request.action != NICRequest::Action::kRun) return inspect(request, print);
  const Expected<host::NICConfig> config = read_file(request.path);
  if (!config) return tl::unexpected(config.error());
  const StopSignal stop;
  struct sigaction hangup {};
  hangup.sa_handler = on_hangup;
  ::sigaction(SIGHUP, &hangup, nullptr);
  const auto server = host::NICServer::open(*config);
  if (!server) return failure(kExitCannot, server.error().message);
  if (!print(fmt::format("{} functions at {}: verbena run --nic {} -- PROGRAM\n",
                         config->functions.size(), config->socket, config->socket)))
    return failure(kExitCannot, "cannot write to standard output");
  (*server)->run(stop.fd(), [&] {
    if (wants_reload.exchange(false)) reload(**server, request.path);
  });
  return {};
}

}  // namespace verbena::cli
