#include "cli/nvmf_targets.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "host/os/descriptor.h"
#include "host/stats/stats_name.h"

namespace verbena::cli {
namespace {

constexpr timeval kAnswerLimit{.tv_sec = 0, .tv_usec = 300'000};

// Others may bind the name of a process that has no target.
bool is_of_process(int socket, pid_t pid) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == pid;
}

}  // namespace

std::vector<nvmf::SubsystemStats> nvmf_stats_of(pid_t pid) {
  if (pid <= 0) return {};  // of another PID namespace
  const host::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const host::AbstractAddress address(nvmf::stats_socket_name(pid));
  const bool is_connected =
      setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerLimit, sizeof kAnswerLimit) == 0 &&
      setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kAnswerLimit, sizeof kAnswerLimit) == 0 &&
      connect(socket.get(), address.data(), address.size) == 0 && is_of_process(socket.get(), pid);
  if (!is_connected) return {};
  std::string text(nvmf::kMaxStatsText, '\0');
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const ssize_t read = recv(socket.get(), text.data() + bytes, text.size() - bytes, 0);
    if (read <= 0) break;
    bytes += static_cast<std::size_t>(read);
  }
  return nvmf::parse_stats(std::string_view(text).substr(0, bytes))
      .value_or(std::vector<nvmf::SubsystemStats>());
}

}  // namespace verbena::cli
