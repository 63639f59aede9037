#include "communicator/bootstrap/rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "coll/host_port.h"

namespace verbena::coll {
namespace {

std::string text_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

std::optional<int> number_of(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int variable(const char* name) { return number_of(text_of(name)).value_or(-1); }

struct Launcher {
  const char *name, *rank, *ranks, *local_ranks, *job;
};
// Verbena's own first: `verbena coll -n` may run inside of another launcher's job.
constexpr std::array kLaunchers = {
    Launcher{"verbena coll", "VERBENA_COLL_RANK", "VERBENA_COLL_RANKS", "VERBENA_COLL_RANKS",
             "VERBENA_COLL_JOB"},
    Launcher{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
             "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    Launcher{"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "PMI_FD"},
    Launcher{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"}};

// The ranks of one mpirun have the same parent, or ancestors of one session, on one host.
std::string local_job_name(const LauncherRank& of) {
  if (!of.job.empty() && of.launcher != "MPICH") return of.job;
  return std::to_string(getppid());
}

Expected<Rendezvous> tcp(std::string_view rest, std::string_view address) {
  auto parts = parse_host_port(rest);
  if (!parts || parts->host.empty() || parts->port == 0)
    return failure(VERBENA_COLL_INVALID,
                   "rendezvous " + std::string(address) + ": it is tcp://HOST:PORT");
  Rendezvous result;
  result.host = std::move(parts->host);
  result.port = parts->port;
  return result;
}

Rendezvous file(std::string path) {
  Rendezvous result;
  result.form = Rendezvous::Form::kFile;
  result.path = std::move(path);
  return result;
}

Expected<Rendezvous> from_environment(const LauncherRank& launcher) {
  if (const std::string given = text_of("VERBENA_COLL_RENDEZVOUS"); !given.empty())
    return read_rendezvous(given, launcher.rank, launcher.ranks);
  const std::string host = text_of("MASTER_ADDR"), port = text_of("MASTER_PORT");
  if (!host.empty() && !port.empty()) {
    // torchrun's own store has the port, so rank 0 takes the next one.
    const int offset =
        launcher.launcher == "torchrun" && text_of("TORCHELASTIC_USE_AGENT_STORE") == "True" ? 1
                                                                                             : 0;
    const auto number = number_of(port);
    return tcp(host + ":" + (number ? std::to_string(*number + offset) : port),
               "MASTER_ADDR:MASTER_PORT");
  }
  if (launcher.local_ranks != launcher.ranks)
    return failure(VERBENA_COLL_RENDEZVOUS,
                   "the ranks of this job are on several hosts: set VERBENA_COLL_RENDEZVOUS to "
                   "tcp://HOST:PORT, where HOST is rank 0's");
  return file("/tmp/verbena-coll-" + std::to_string(getuid()) + "-" + local_job_name(launcher));
}

std::string safe(std::string job) {
  std::ranges::replace_if(
      job, [](char c) { return c == '/' || c == '\n'; }, '_');
  return job;
}

}  // namespace

LauncherRank launcher_rank() {
  for (const Launcher& launcher : kLaunchers) {
    if (variable(launcher.rank) < 0 || variable(launcher.ranks) < 1) continue;
    return {launcher.name, variable(launcher.rank), variable(launcher.ranks),
            variable(launcher.local_ranks), safe(text_of(launcher.job))};
  }
  return {};
}

Expected<Rendezvous> read_rendezvous(std::string_view address, int rank, int ranks) {
  const LauncherRank launcher = launcher_rank();
  if (rank < 0) rank = launcher.rank;
  if (ranks < 0) ranks = launcher.ranks;
  Expected<Rendezvous> result = [&]() -> Expected<Rendezvous> {
    if (address.starts_with("tcp://")) return tcp(address.substr(6), address);
    if (address.starts_with("file://") && address.size() > 7)
      return file(std::string(address.substr(7)));
    if (address == "store://") return Rendezvous{.form = Rendezvous::Form::kStore};
    if (address != "env://")
      return failure(VERBENA_COLL_INVALID,
                     "rendezvous " + std::string(address) +
                         ": it is tcp://HOST:PORT, file://PATH, env:// or store://");
    if (launcher.ranks < 1)
      return failure(VERBENA_COLL_RENDEZVOUS,
                     "env://: no launcher has set a rank (RANK and WORLD_SIZE, "
                     "OMPI_COMM_WORLD_RANK and _SIZE, or PMI_RANK and PMI_SIZE)");
    Expected<Rendezvous> found = from_environment(launcher);
    if (found && launcher.launcher != "MPICH") found->job = launcher.job;
    return found;
  }();
  if (!result) return result;
  if (ranks < 1 || ranks > static_cast<int>(kMaxRanks) || rank < 0 || rank >= ranks)
    return failure(VERBENA_COLL_INVALID, "rank " + std::to_string(rank) + " of " +
                                             std::to_string(ranks) + ": ranks are 0 to N - 1 of " +
                                             "N, and N is at most " + std::to_string(kMaxRanks));
  result->rank = static_cast<u32>(rank);
  result->ranks = static_cast<u32>(ranks);
  return result;
}

}  // namespace verbena::coll
