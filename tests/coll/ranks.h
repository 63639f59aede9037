// Ranks of a job, each a process: RunRanks forks them, and each runs a function with its own
// communicator. A rank fails by a text; the parent prints all texts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <verbena/collectives.h>

namespace verbena::coll_test {

// "" if all is as it must be.
using RankFunction = std::function<std::string(int rank, verbena_comm* comm)>;

struct Job {
  int ranks = 2;
  double timeout_s = 30;
  const char* algorithm = nullptr;
  const char* address = "127.40.0.1";  // of the devices
  const char* faults = nullptr;
  bool is_local = true;  // copies between processes; else packets
  double seconds = 60;   // after which ranks that have not ended are killed, and fail
};

// Returns the result of each rank, or "killed: SIGNAL" of one that ended otherwise. A rank that is
// expected to die calls die().
std::vector<std::string> run_ranks(const Job& job, const RankFunction& function);
[[noreturn]] void die();
inline constexpr const char* kDied = "died";

// A folder that is removed with the process, for file:// rendezvous.
std::string scratch_path(const std::string& name);

}  // namespace verbena::coll_test
