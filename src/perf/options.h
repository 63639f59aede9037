// Options: the measurement of a rank of `verbena coll`, as the command gives it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "coll/call.h"

namespace verbena::perf {

// The operations of nccl-tests; the last is no collective.
enum class Test : u8 {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kGather,
  kScatter,
  kSendRecv,
};
inline constexpr u32 kTests = 9;
[[nodiscard]] std::string_view name_of(Test test);
// Parses "all_reduce", with or without '_', '-' and a final "_perf". Returns nullopt for other
// names.
[[nodiscard]] std::optional<Test> test_named(std::string_view name);
// busbw = algbw * factor, as in nccl-tests' PERFORMANCE.md.
[[nodiscard]] double bus_factor(Test test, u32 ranks);

struct Options {
  Test test = Test::kAllReduce;
  u64 min_bytes = 8, max_bytes = 64u << 20;
  u64 step_bytes = 0;  // added from size to size; 0: multiplied by `factor`
  u64 factor = 2;
  coll::DataType type = coll::DataType::kFloat32;
  coll::ReduceOp op = coll::ReduceOp::kSum;
  int root = 0;
  u32 warmups = 5, iterations = 20;
  bool checks = true, registers = false;
  std::string rendezvous = "env://";
  std::string algorithm{}, table{}, tune{};
  double timeout_s = 30;
  std::vector<double> predicted_us{};  // for each size, in order

  static constexpr u64 kMostSizes = 100'000;
  [[nodiscard]] bool has_too_many_sizes() const {
    return step_bytes != 0 && max_bytes > min_bytes &&
           (max_bytes - min_bytes) / step_bytes >= kMostSizes;
  }
  // Bytes, whole elements for each rank.
  [[nodiscard]] std::vector<u64> sizes(u32 ranks) const;
};

// Reads an option NAME=VALUE. Returns the error, or "" if there is none.
[[nodiscard]] std::string read_option(Options& options, std::string_view name,
                                      const std::string& value);
// Parses "4K", "64M", "1G" or "100". Returns nullopt if `text` is no size.
[[nodiscard]] std::optional<u64> read_size(std::string_view text);

}  // namespace verbena::perf
