#include "perf/tuning.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>

#include <fmt/format.h>

#include "coll/plan.h"
#include "perf/measurement.h"

namespace verbena::perf {
namespace {

struct Candidate {
  const char* algorithm;
  u64 chunk;
};
constexpr std::array kCandidates = {Candidate{"one-shot", 0},
                                    Candidate{"direct", 128u << 10},
                                    Candidate{"direct", 512u << 10},
                                    Candidate{"direct", 2u << 20},
                                    Candidate{"ring", 512u << 10},
                                    Candidate{"halving-doubling", 0},
                                    Candidate{"double-tree", 128u << 10},
                                    Candidate{"tree", 128u << 10}};

struct Tuned {
  Test test;
  coll::Kind kind;
};
constexpr std::array kTuned = {Tuned{Test::kAllReduce, coll::Kind::kAllReduce},
                               Tuned{Test::kAllGather, coll::Kind::kAllGather},
                               Tuned{Test::kReduceScatter, coll::Kind::kReduceScatter},
                               Tuned{Test::kBroadcast, coll::Kind::kBroadcast}};

// Short rounds, of which some are not disturbed by other work on the machine.
constexpr u32 kRounds = 11;
constexpr double kRoundUs = 3'000;  // of one candidate's operations
constexpr u32 kMostIterations = 500;
constexpr u64 kLeastCosted = 4096;  // bytes of an operation; in less the latency is all

class Tuner {
 public:
  Tuner(const Options& options, verbena_comm* comm)
      : comm_(comm), ranks_(static_cast<u32>(verbena_coll_size(comm))), options_(options) {
    options_.checks = false;
    options_.warmups = 1;
    options_.type = coll::DataType::kFloat32;
    options_.op = coll::ReduceOp::kSum;
  }

  std::string run() {
    if (std::string why = check_file(); !why.empty()) return why;
    text_ = "# verbena coll --tune: " + std::to_string(ranks_) + " ranks\n";
    std::string why;
    for (const Tuned& tuned : kTuned)
      if (why = tune(tuned); !why.empty()) return why;
    if (why = add_costs(); !why.empty()) return why;
    if (verbena_coll_rank(comm_) != 0) return "";
    std::ofstream file(options_.tune);
    file << text_;
    file.close();
    return file ? "" : "cannot write " + options_.tune;
  }

 private:
  // Asks before minutes are spent. All ranks fail if rank 0 cannot write: it destroys the
  // communicator.
  std::string check_file() {
    if (verbena_coll_rank(comm_) != 0) return "";
    const std::ofstream file(options_.tune, std::ios::app);
    return file ? "" : "cannot write " + options_.tune;
  }

  [[nodiscard]] std::vector<u64> sizes() const {
    std::vector<u64> all;
    for (u64 size = 256; size <= options_.max_bytes; size *= 4)
      all.push_back(size / (4 * ranks_) * 4 * ranks_);
    return all;
  }

  // The lower quartile of some rounds, because other work on the machine can only add. All ranks
  // have the same times, so they decide alike.
  std::string time(Test test, u64 bytes, double& us) {
    options_.test = test;
    Measurement measurement(options_, comm_);
    if (std::string why = measurement.prepare(bytes); !why.empty()) return why;
    std::array<double, kRounds> times{};
    Result result;
    std::string why = measurement.run(bytes, Place::kInPlace, 2, result);
    const u32 iterations = static_cast<u32>(
        std::clamp(kRoundUs / std::max(result.us, 0.1), 2.0, static_cast<double>(kMostIterations)));
    for (u32 round = 0; round < kRounds && why.empty(); ++round) {
      why = measurement.run(bytes, Place::kInPlace, iterations, result);
      times[round] = result.us;
    }
    std::ranges::sort(times);
    us = times[kRounds / 4];
    return why;
  }

  std::string tune(const Tuned& tuned) {
    const std::vector<u64> all = sizes();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Candidate* best = nullptr;
      double best_us = 0;
      for (const Candidate& candidate : kCandidates) {
        if (!can(tuned, candidate, all[i])) continue;
        if (verbena_coll_set_algorithm(comm_, candidate.algorithm, candidate.chunk) != 0)
          return verbena_coll_error();
        double us = 0;
        if (std::string why = time(tuned.test, all[i], us); !why.empty()) return why;
        if (best == nullptr || us < best_us) {
          best = &candidate;
          best_us = us;
        }
      }
      best_us_[tuned.test][all[i]] = best_us;
      const u64 up_to = i + 1 == all.size() ? u64{1} << 40 : 2 * all[i];
      text_ +=
          fmt::format("choose {} {} {} {} {}  # {} bytes: {:.2f} us\n", coll::name_of(tuned.kind),
                      ranks_, up_to, best->algorithm, best->chunk, all[i], best_us);
    }
    verbena_coll_set_algorithm(comm_, nullptr, 0);
    return "";
  }

  [[nodiscard]] bool can(const Tuned& tuned, const Candidate& candidate, u64 bytes) const {
    const bool is_share =
        tuned.kind == coll::Kind::kAllGather || tuned.kind == coll::Kind::kReduceScatter;
    const coll::Call call{.kind = tuned.kind,
                          .type = coll::DataType::kFloat32,
                          .count = bytes / 4 / (is_share ? ranks_ : 1)};
    const coll::Algorithm algorithm{*coll::algorithm_number(candidate.algorithm), candidate.chunk};
    // Short data is not cut, so that chunks make no difference.
    const bool is_known = candidate.chunk > (128u << 10) && candidate.chunk > bytes;
    return !is_known && coll::refusal(call, algorithm, {ranks_, ranks_}).empty();
  }

  // The cost of the data that a rank receives from the others, which is all but its own part: from
  // the times of the fastest algorithms, since operations take those.
  std::string add_costs() {
    if (ranks_ < 2) return "";
    double latency_us = 0;
    if (std::string why = time(Test::kAllGather, 4u * ranks_, latency_us); !why.empty()) return why;
    text_ += fmt::format("latency {:.0f}\n", latency_us * 1e3);
    for (const Test test : {Test::kAllGather, Test::kReduceScatter})
      for (const auto& [bytes, us] : best_us_[test]) {
        if (bytes < kLeastCosted) continue;
        const double received = static_cast<double>(bytes) * (ranks_ - 1) / ranks_;
        const double ps = std::max(1.0, (us - latency_us) * 1e6 / received);
        text_ += fmt::format("cost {} {} {:.1f}\n",
                             test == Test::kReduceScatter ? "reduce" : "copy", bytes, ps);
      }
    return "";
  }

  verbena_comm* comm_;
  u32 ranks_;
  Options options_;
  std::map<Test, std::map<u64, double>> best_us_{};  // by bytes
  std::string text_{};
};

}  // namespace

std::string tune(const Options& options, verbena_comm* comm) { return Tuner(options, comm).run(); }

}  // namespace verbena::perf
