#include "cli/nic.h"

#include <signal.h>
#include <sys/stat.h>

#include <atomic>

#include <fmt/format.h>

#include "cli/nic_file.h"
#include "cli/stop_signal.h"
#include "cli/text_file.h"
#include "host/nic/nic_server.h"

namespace verbena::cli {
namespace {

std::atomic<bool> wants_reload{false};

void on_hangup(int) { wants_reload.store(true); }

Expected<host::NICConfig> read_file(const std::string& path) {
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

Expected<void> print_status(const std::string& path, const Print& print) {
  const Expected<std::string> socket = socket_of(path);
  if (!socket) return tl::unexpected(socket.error());
  const auto status = host::status_of_nic(*socket);
  if (!status) return failure(kExitCannot, status.error().message);
  if (!print(*status)) return failure(kExitCannot, "cannot write to standard output");
  return {};
}

// What is wrong in the new file leaves the NIC as it is.
void reload(host::NICServer& server, const std::string& path) {
  const Expected<host::NICConfig> config = read_file(path);
  const auto taken = config ? server.reconfigure(*config)
                            : host::Expected<void>(host::failure(EINVAL, config.error().message));
  if (!taken) fmt::print(stderr, "verbena nic: nothing has changed: {}\n", taken.error().message);
}

}  // namespace

Expected<void> nic(const NICRequest& request, const Print& print) {
  if (request.action == NICRequest::Action::kStatus) return print_status(request.path, print);
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
