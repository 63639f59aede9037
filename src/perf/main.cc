// verbena-coll-rank: one rank of `verbena coll`, which gives the options as NAME=VALUE. Rank 0
// prints the table of nccl-tests.
#include <unistd.h>

#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "perf/measurement.h"
#include "perf/options.h"
#include "perf/tuning.h"

namespace verbena::perf {
namespace {

constexpr u64 kLargeBytes = 16u << 20;  // from here on, fewer iterations

int fail(const std::string& why) {
  fmt::print(stderr, "verbena: {}\n", why);
  return 1;
}

class Table {
 public:
  Table(const Options& options, u32 ranks, bool prints)
      : options_(options), ranks_(ranks), prints_(prints) {}

  void head() const {
    if (!prints_) return;
    fmt::print("# {}: {} ranks, {} to {} bytes, warmup iters: {}, iters: {}, validation: {}\n#\n",
               name_of(options_.test), ranks_, options_.min_bytes, options_.max_bytes,
               options_.warmups, options_.iterations, options_.checks ? 1 : 0);
    const std::string wide = options_.predicted_us.empty() ? "" : "  predicted";
    fmt::print("# {:>58} {:>38}\n", "out-of-place", "in-place");
    fmt::print(
        "# {:>11} {:>13} {:>9} {:>7} {:>7} {:>9} {:>7} {:>7} {:>6} {:>9} {:>7} {:>7} {:>6}{}\n",
        "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time",
        "algbw", "busbw", "#wrong", wide);
    fmt::print(
        "# {:>11} {:>13} {:>9} {:>7} {:>7} {:>9} {:>7} {:>7} {:>6} {:>9} {:>7} {:>7} {:>6}{}\n",
        "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)",
        "", options_.predicted_us.empty() ? "" : "       (us)");
    std::fflush(stdout);
  }

  void row(u64 bytes, u64 elements, const Result& out, const Result& in, std::size_t index) {
    if (!prints_) return;
    fmt::print("  {:>11} {:>13} {:>9} {:>7} {:>7}{}{}", bytes, elements,
               coll::name_of(options_.type), has_op() ? coll::name_of(options_.op) : "none",
               has_root() ? options_.root : -1, cells(bytes, out), cells(bytes, in));
    if (index < options_.predicted_us.size())
      fmt::print(" {:>10}", time_text(options_.predicted_us[index]));
    fmt::print("\n");
    std::fflush(stdout);
  }

  // Returns whether every element was right.
  bool foot() const {
    if (!prints_) return wrong_ == 0;
    fmt::print("# Out of bounds values : {} {}\n", wrong_, wrong_ == 0 ? "OK" : "FAILED");
    fmt::print("# Avg bus bandwidth    : {:.4f}\n#\n", rows_ == 0 ? 0 : busbw_ / rows_);
    return wrong_ == 0;
  }

 private:
  [[nodiscard]] bool has_op() const {
    return options_.test == Test::kAllReduce || options_.test == Test::kReduce ||
           options_.test == Test::kReduceScatter;
  }
  [[nodiscard]] bool has_root() const {
    return options_.test == Test::kBroadcast || options_.test == Test::kReduce ||
           options_.test == Test::kGather || options_.test == Test::kScatter;
  }
  static std::string time_text(double us) {
    return us < 10 ? fmt::format("{:.2f}", us) : fmt::format("{:.1f}", us);
  }
  std::string cells(u64 bytes, const Result& result) {
    const double algbw = static_cast<double>(bytes) / result.us / 1e3;
    const double busbw = algbw * bus_factor(options_.test, ranks_);
    busbw_ += busbw;
    ++rows_;
    if (result.wrong > 0) wrong_ += result.wrong;
    return fmt::format(" {:>9} {:>7.2f} {:>7.2f} {:>6}", time_text(result.us), algbw, busbw,
                       result.wrong < 0 ? "N/A" : std::to_string(result.wrong));
  }

  const Options& options_;
  u32 ranks_;
  bool prints_;
  i64 wrong_ = 0;
  double busbw_ = 0;
  int rows_ = 0;
};

int measure(const Options& options, verbena_comm* comm) {
  const u32 ranks = static_cast<u32>(verbena_coll_size(comm));
  const bool is_first = verbena_coll_rank(comm) == 0;
  const std::vector<u64> sizes = options.sizes(ranks);
  Table table(options, ranks, is_first);
  Measurement measurement(options, comm);
  if (std::string why = measurement.prepare(sizes.empty() ? 0 : sizes.back()); !why.empty())
    return is_first ? fail(why) : 1;
  table.head();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const u32 iterations =
        sizes[i] >= kLargeBytes ? std::max(1u, options.iterations / 2) : options.iterations;
    Result out, in;
    std::string why = measurement.run(sizes[i], Place::kOutOfPlace, iterations, out);
    if (why.empty()) why = measurement.run(sizes[i], Place::kInPlace, iterations, in);
    if (!why.empty()) return fail("rank " + std::to_string(verbena_coll_rank(comm)) + ": " + why);
    table.row(sizes[i], measurement.elements(sizes[i]), out, in, i);
  }
  return table.foot() ? 0 : 1;
}

int run(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (const std::string why = read_option(options, name, value); !why.empty())
      return fail(argument + ": " + why);
  }
  verbena_coll_options wanted{};
  wanted.size = sizeof wanted;
  wanted.timeout_s = options.timeout_s;
  if (!options.algorithm.empty()) wanted.algorithm = options.algorithm.c_str();
  if (!options.table.empty()) wanted.table = options.table.c_str();
  verbena_comm* comm = nullptr;
  if (verbena_coll_init(&comm, options.rendezvous.c_str(), -1, -1, &wanted) != VERBENA_COLL_OK)
    return fail(verbena_coll_error());
  int status = 0;
  if (options.tune.empty()) {
    status = measure(options, comm);
  } else if (const std::string why = tune(options, comm); !why.empty()) {
    status = fail(why);
  } else if (verbena_coll_rank(comm) == 0) {
    fmt::print("wrote {}\n", options.tune);
  }
  verbena_coll_destroy(comm);
  return status;
}

}  // namespace
}  // namespace verbena::perf

int main(int argc, char** argv) { return verbena::perf::run(argc, argv); }
