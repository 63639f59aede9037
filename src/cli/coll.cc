#include "cli/coll.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "base/check.h"
#include "cli/library_folder.h"
#include "cli/run.h"
#include "coll/costs.h"
#include "jobs/live_prediction.h"

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRankProgram = "verbena-coll-rank";

// Variables that a launcher sets for each process of a job.
bool is_rank_of_a_job() {
  constexpr std::array kVariables = {"VERBENA_COLL_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
  for (const char* const variable : kVariables)
    if (std::getenv(variable) != nullptr) return true;
  return std::getenv("RANK") != nullptr && std::getenv("WORLD_SIZE") != nullptr;
}

u32 ranks_of_the_job() {
  for (const char* const variable :
       {"VERBENA_COLL_RANKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE"})
    if (const char* const value = std::getenv(variable))
      return static_cast<u32>(
          std::clamp<long>(std::strtol(value, nullptr, 10), 2, CollRequest::kMaxRanks));
  return 2;
}

RunRequest program_of(const CollRequest& request, const fs::path& program) {
  RunRequest run = request.run;
  run.command = {program.string()};
  run.command.insert(run.command.end(), request.options.begin(), request.options.end());
  return run;
}

// The child's own; it never returns from it.
[[noreturn]] void become_rank(const RunRequest& run) {
  const Failure failure = cli::run(run);
  fmt::print(stderr, "verbena: {}\n", failure.message);
  _exit(failure.exit_status);
}

int status_of(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

// A file for the rendezvous, in a folder of our own.
struct Rendezvous {
  fs::path folder;
  ~Rendezvous() {
    std::error_code error;
    if (!folder.empty()) fs::remove_all(folder, error);
  }
  [[nodiscard]] bool make() {
    std::string name = (fs::temp_directory_path() / "verbena-coll-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return false;
    folder = name;
    return true;
  }
};

coll::Kind kind_of(perf::Test test) {
  switch (test) {
    case perf::Test::kAllReduce: return coll::Kind::kAllReduce;
    case perf::Test::kAllGather: return coll::Kind::kAllGather;
    case perf::Test::kReduceScatter: return coll::Kind::kReduceScatter;
    case perf::Test::kReduce: return coll::Kind::kReduce;
    case perf::Test::kAllToAll: return coll::Kind::kAllToAll;
    case perf::Test::kGather: return coll::Kind::kGather;
    case perf::Test::kScatter: return coll::Kind::kScatter;
    case perf::Test::kBroadcast:
    case perf::Test::kSendRecv: return coll::Kind::kBroadcast;  // each receives all of it
  }
  CHECK_UNREACHABLE();
}

// Returns the simulator's time of each size. The same file has the costs and the algorithms.
Expected<std::string> predictions(const CollRequest& request, u32 ranks) {
  const auto costs = coll::Costs::read(request.predict);
  if (!costs) return failure(kExitCannot, costs.error().text);
  const perf::Options& options = request.measured;
  const auto table = coll::Table::read(options.table.empty() ? request.predict : options.table);
  if (!table) return failure(kExitCannot, table.error().text);
  coll::Choice choice{.table = *table};
  if (!options.algorithm.empty())
    choice.forced = coll::Algorithm{*coll::algorithm_number(options.algorithm), 0};
  const bool is_share =
      options.test != perf::Test::kAllReduce && options.test != perf::Test::kBroadcast &&
      options.test != perf::Test::kReduce && options.test != perf::Test::kSendRecv;
  std::string list;
  for (const u64 bytes : options.sizes(ranks)) {
    const coll::Call call{.kind = kind_of(options.test),
                          .type = options.type,
                          .op = options.op,
                          .count = bytes / size_of(options.type) / (is_share ? ranks : 1)};
    const Duration time = jobs::predict(call, ranks, choice, *costs);
    list += fmt::format("{}{:.3f}", list.empty() ? "" : ",", time.seconds() * 1e6);
  }
  return list;
}

Expected<int> start_ranks(const CollRequest& request, const RunRequest& run) {
  Rendezvous rendezvous;
  if (!rendezvous.make())
    return failure(kExitCannot, fmt::format("cannot make a folder: {}", std::strerror(errno)));
  setenv("VERBENA_COLL_RANKS", std::to_string(request.ranks).c_str(), 1);
  setenv("VERBENA_COLL_JOB", rendezvous.folder.c_str(), 1);
  setenv("VERBENA_COLL_RENDEZVOUS", ("file://" + (rendezvous.folder / "rank0").string()).c_str(),
         1);
  std::vector<pid_t> ranks;
  for (u32 rank = 0; rank < request.ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      setenv("VERBENA_COLL_RANK", std::to_string(rank).c_str(), 1);
      become_rank(run);
    }
    if (pid < 0) {
      for (const pid_t started : ranks) kill(started, SIGTERM);
      return failure(kExitCannot,
                     fmt::format("cannot start rank {}: {}", rank, std::strerror(errno)));
    }
    ranks.push_back(pid);
  }
  int first = 0;
  for (const pid_t pid : ranks) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (first == 0) first = status_of(status);
  }
  return first;
}

}  // namespace

Expected<int> coll(const CollRequest& request) {
  const auto program = program_beside_library(kRankProgram);
  if (!program) return tl::unexpected(program.error());
  CollRequest job = request;
  const bool is_rank = is_rank_of_a_job();
  if (!request.predict.empty()) {
    const auto predicted = predictions(request, is_rank ? ranks_of_the_job() : request.ranks);
    if (!predicted) return tl::unexpected(predicted.error());
    job.options.push_back("predicted=" + *predicted);
    if (request.measured.table.empty()) job.options.push_back("table=" + request.predict);
  }
  const RunRequest run = program_of(job, *program);
  if (!is_rank) return start_ranks(job, run);
  if (request.ranks_are_given)
    return failure(kExitCannot, "-n: this is a rank of a job that has its number of ranks already");
  return tl::unexpected(cli::run(run));
}

}  // namespace verbena::cli
