#include "tests/coll/ranks.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

namespace verbena::coll_test {
namespace {

constexpr int kDeathStatus = 77;

struct Scratch {
  std::filesystem::path folder;
  pid_t owner = getpid();
  Scratch() {
    char name[] = "/tmp/verbena-coll-test-XXXXXX";
    folder = mkdtemp(name);
  }
  ~Scratch() {
    std::error_code error;
    if (getpid() == owner) std::filesystem::remove_all(folder, error);
  }
};

void set_environment(const Job& job) {
  setenv("VERBENA_ADDRESS", job.address, 1);
  if (job.faults != nullptr) setenv("VERBENA_FAULT", job.faults, 1);
  if (!job.is_local) setenv("VERBENA_LOCAL", "off", 1);
}

std::string run_rank(const Job& job, int rank, const std::string& path,
                     const RankFunction& function) {
  set_environment(job);
  verbena_coll_options options{};
  options.size = sizeof options;
  options.timeout_s = job.timeout_s;
  options.algorithm = job.algorithm;
  verbena_comm* comm = nullptr;
  if (verbena_coll_init(&comm, ("file://" + path).c_str(), rank, job.ranks, &options) != 0)
    return std::string("init: ") + verbena_coll_error();
  std::string result = function(rank, comm);
  if (verbena_coll_destroy(comm) != 0 && result.empty()) result = verbena_coll_error();
  return result;
}

struct Child {
  pid_t pid = 0;
  int output = -1;
};

Child start(const Job& job, int rank, const std::string& path, const RankFunction& function) {
  int ends[2];
  if (pipe(ends) != 0) abort();
  const pid_t pid = fork();
  if (pid != 0) {
    close(ends[1]);
    return {pid, ends[0]};
  }
  close(ends[0]);
  const std::string result = run_rank(job, rank, path, function);
  const ssize_t written = write(ends[1], result.data(), result.size());
  _exit(written == static_cast<ssize_t>(result.size()) ? 0 : 1);
}

std::string finish(const Child& child, std::chrono::steady_clock::time_point deadline) {
  std::string text;
  char buffer[4096];
  pollfd readable{.fd = child.output, .events = POLLIN, .revents = 0};
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (poll(&readable, 1, std::max(0, static_cast<int>(left.count()))) <= 0) {
      kill(child.pid, SIGKILL);
      text += " (not done in time)";
      break;
    }
    const ssize_t got = read(child.output, buffer, sizeof buffer);
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  close(child.output);
  int status = 0;
  waitpid(child.pid, &status, 0);
  if (WIFSIGNALED(status)) return text + "killed: " + std::to_string(WTERMSIG(status));
  if (WEXITSTATUS(status) == kDeathStatus) return kDied;
  return text;
}

}  // namespace

std::string scratch_path(const std::string& name) {
  static const Scratch scratch;
  return scratch.folder / name;
}

void die() { _exit(kDeathStatus); }

std::vector<std::string> run_ranks(const Job& job, const RankFunction& function) {
  static int jobs = 0;
  const std::string path = scratch_path("job" + std::to_string(++jobs));
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::milliseconds(static_cast<int>(job.seconds * 1e3));
  std::vector<Child> children;
  for (int rank = 0; rank < job.ranks; ++rank) children.push_back(start(job, rank, path, function));
  std::vector<std::string> results;
  for (const Child& child : children) results.push_back(finish(child, deadline));
  return results;
}

}  // namespace verbena::coll_test
