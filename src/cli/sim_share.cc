#include "cli/sim_share.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "cli/mpi_ranks.h"

namespace verbena::cli {
namespace {

constexpr auto kBetweenPolls = std::chrono::milliseconds(10);
constexpr int kFirst = 0;  // the process that prints

// Messages between processes.
enum Tag : int {
  kStop,     // to all: somebody was told to, or has failed
  kDone,     // to the first: the title of a run
  kResults,  // to the first: packed(runs), of one that has done all of its own
  kFinish,   // from the first: it has all results
};

// Returns how many of this machine's cores the process may use: those that it is bound to, or its
// share of all cores if mpirun binds it to none.
std::size_t cores_of(int processes) {
  cpu_set_t bound;
  CPU_ZERO(&bound);
  const std::size_t all = std::max(1u, std::thread::hardware_concurrency());
  if (::sched_getaffinity(0, sizeof(bound), &bound) != 0) return all;
  const auto mine = static_cast<std::size_t>(std::max(1, CPU_COUNT(&bound)));
  const char* const local = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  const std::size_t here = local != nullptr
                               ? static_cast<std::size_t>(std::max(1, std::atoi(local)))
                               : static_cast<std::size_t>(processes);
  return mine < all ? mine : std::max<std::size_t>(1, all / here);
}

class Sharing {
 public:
  Sharing(std::vector<SimRun>& runs, const DoRun& run, MPIRanks* ranks, const StopSignal& signal)
      : runs_(runs), run_(run), ranks_(ranks), signal_(signal) {
    if (ranks == nullptr) return;
    first_ = static_cast<std::size_t>(ranks->rank());
    step_ = static_cast<std::size_t>(ranks->size());
  }

  ShareEnd work() {
    const std::size_t mine = first_ < runs_.size() ? (runs_.size() - first_ - 1) / step_ + 1 : 0;
    std::vector<std::jthread> workers;
    const int processes = ranks_ != nullptr ? ranks_->size() : 1;
    const std::size_t wanted = std::min(cores_of(processes), mine);
    working_ = wanted;
    for (std::size_t i = ranks_ == nullptr ? 1 : 0; i < wanted; ++i)
      workers.emplace_back([this] { work_on(); });
    if (ranks_ == nullptr)
      work_on();
    else
      exchange();
    workers.clear();
    if (ranks_ != nullptr && ranks_->rank() != kFirst) return ShareEnd::kElsewhere;
    return is_stopped() ? ShareEnd::kStopped : ShareEnd::kAll;
  }

 private:
  bool is_stopped() const { return told_ || signal_.wait(Duration()); }

  // Each core takes the next run that nobody has.
  void work_on() {
    const auto place = [this](std::size_t i) { return first_ + i * step_; };
    for (std::size_t i = place(next_++); i < runs_.size() && !is_stopped(); i = place(next_++)) {
      run_(runs_[i], [this] { return is_stopped(); });
      const std::lock_guard lock(mutex_);
      runs_[i].has_run = true;
      if (ranks_ == nullptr)
        show(runs_[i].title);
      else
        done_.push_back(runs_[i].title);
      if (!runs_[i].column && ranks_ != nullptr) told_ = true;
    }
    --working_;
  }
  void show(const std::string& title) {
    fmt::print(stderr, "{} of {}: {}\n", ++shown_, runs_.size(), title);
  }

  // The thread that speaks MPI. It sleeps between looks, since MPI's own waiting takes a core.
  void exchange() {
    const bool is_first = ranks_->rank() == kFirst;
    int results = 0;
    bool has_told = false, is_ready = false, goes_on = true;
    while (goes_on) {
      if (is_stopped() && !std::exchange(has_told, true)) tell_all(kStop);
      while (const auto message = ranks_->poll()) {
        switch (message->tag) {
          case kStop: told_ = has_told = true; break;
          case kDone: show(message->text); break;
          case kResults:
            unpack(message->text, runs_);
            ++results;
            break;
          case kFinish: goes_on = false; break;
        }
      }
      const bool is_done = working_ == 0;
      tell_of_done();
      if (is_done && !std::exchange(is_ready, true) && !is_first)
        ranks_->send(kFirst, kResults, packed(runs_));
      if (is_first && is_done && results == ranks_->size() - 1) {
        tell_all(kFinish);
        return;
      }
      std::this_thread::sleep_for(kBetweenPolls);
    }
  }
  void tell_of_done() {
    const std::lock_guard lock(mutex_);
    for (const std::string& title : done_)
      ranks_->rank() == kFirst ? show(title) : ranks_->send(kFirst, kDone, title);
    done_.clear();
  }
  void tell_all(Tag tag) {
    for (int rank = 0; rank < ranks_->size(); ++rank)
      if (rank != ranks_->rank()) ranks_->send(rank, tag, "");
  }

  std::vector<SimRun>& runs_;
  const DoRun& run_;
  MPIRanks* const ranks_;  // nullptr if there is only this process
  std::size_t first_ = 0, step_ = 1;
  const StopSignal& signal_;
  std::atomic<bool> told_{false};
  std::atomic<std::size_t> next_ = 0, working_ = 0;
  std::mutex mutex_;  // guards those below, the runs' messages and standard error
  std::vector<std::string> done_;
  std::size_t shown_ = 0;
};

}  // namespace

Expected<ShareEnd> run_all(std::vector<SimRun>& runs, const DoRun& run) {
  const StopSignal signal;  // before MPI has threads, which would be ended by it
  const std::optional<MPIPlace> place = mpi_place();
  if (!place) return Sharing(runs, run, nullptr, signal).work();
  const Expected<std::unique_ptr<MPIRanks>> ranks = MPIRanks::join(*place);
  if (!ranks) return tl::unexpected(ranks.error());
  return Sharing(runs, run, ranks->get(), signal).work();
}

}  // namespace verbena::cli
