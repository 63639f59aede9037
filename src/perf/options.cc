#include "perf/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>

namespace verbena::perf {
namespace {

struct TestRow {
  std::string_view name;
  std::string_view plain;
};
constexpr std::array<TestRow, kTests> kRows = {TestRow{"all_reduce", "allreduce"},
                                               TestRow{"all_gather", "allgather"},
                                               TestRow{"reduce_scatter", "reducescatter"},
                                               TestRow{"broadcast", "broadcast"},
                                               TestRow{"reduce", "reduce"},
                                               TestRow{"alltoall", "alltoall"},
                                               TestRow{"gather", "gather"},
                                               TestRow{"scatter", "scatter"},
                                               TestRow{"sendrecv", "sendrecv"}};

template <typename Enum>
std::optional<Enum> named(std::string_view name, u32 count) {
  for (u32 i = 0; i < count; ++i)
    if (coll::name_of(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  return std::nullopt;
}

std::optional<coll::DataType> type_named(std::string_view name) {
  if (name == "float16" || name == "fp16") name = "half";
  if (name == "float32") name = "float";
  if (name == "float64") name = "double";
  if (name == "bf16") name = "bfloat16";
  return named<coll::DataType>(name, coll::kDataTypes);
}

std::optional<coll::ReduceOp> op_named(std::string_view name) {
  if (name == "product") name = "prod";
  if (name == "average") name = "avg";
  return named<coll::ReduceOp>(name, coll::kReduceOps);
}

template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <typename T>
std::string take(T& to, const std::optional<T>& value, const std::string& why) {
  if (!value) return why;
  to = *value;
  return "";
}

std::string take_at_least(u32& to, const std::string& value, u32 least) {
  const auto read = number<u32>(value);
  if (!read || *read < least) return "it is " + std::to_string(least) + " or more";
  to = *read;
  return "";
}

std::vector<double> read_list(const std::string& value) {
  std::vector<double> list;
  std::istringstream words(value);
  for (double one = 0; words >> one; words.ignore(1)) list.push_back(one);
  return list;
}

}  // namespace

std::string_view name_of(Test test) { return kRows[static_cast<u32>(test)].name; }

std::optional<Test> test_named(std::string_view name) {
  if (name.ends_with("_perf")) name.remove_suffix(5);
  std::string plain;
  for (const char c : name)
    if (c != '_' && c != '-') plain.push_back(c);
  for (u32 i = 0; i < kTests; ++i)
    if (kRows[i].plain == plain) return static_cast<Test>(i);
  return std::nullopt;
}

double bus_factor(Test test, u32 ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (test) {
    case Test::kAllReduce: return 2 * others;
    case Test::kAllGather:
    case Test::kReduceScatter:
    case Test::kAllToAll:
    case Test::kGather:
    case Test::kScatter: return others;
    case Test::kBroadcast:
    case Test::kReduce:
    case Test::kSendRecv: return 1;
  }
  return 1;
}

std::optional<u64> read_size(std::string_view text) {
  u32 shift = 0;
  if (text.ends_with("iB")) text.remove_suffix(2);
  if (text.ends_with("B")) text.remove_suffix(1);
  if (!text.empty()) {
    const char unit = text.back();
    if (unit == 'K' || unit == 'k') shift = 10;
    if (unit == 'M' || unit == 'm') shift = 20;
    if (unit == 'G' || unit == 'g') shift = 30;
  }
  if (shift != 0) text.remove_suffix(1);
  const auto value = number<u64>(text);
  if (!value || *value > (u64{1} << 40) >> shift) return std::nullopt;
  return *value << shift;
}

std::vector<u64> Options::sizes(u32 ranks) const {
  const bool is_shared = test != Test::kAllReduce && test != Test::kBroadcast &&
                         test != Test::kReduce && test != Test::kSendRecv;
  const u64 unit = u64{size_of(type)} * (is_shared ? ranks : 1);
  std::vector<u64> all;
  for (u64 bytes = min_bytes; bytes <= max_bytes;) {
    const u64 whole = bytes / unit * unit;
    if (all.empty() || all.back() != whole) all.push_back(whole);
    const u64 next = step_bytes != 0 ? bytes + step_bytes : bytes * factor;
    if (next <= bytes) break;
    bytes = next;
  }
  return all;
}

std::string read_option(Options& options, std::string_view name, const std::string& value) {
  const std::string size = "it is a number of bytes, such as 8, 64K or 16M";
  if (name == "test") return take(options.test, test_named(value), "there is no such operation");
  if (name == "min") return take(options.min_bytes, read_size(value), size);
  if (name == "max") return take(options.max_bytes, read_size(value), size);
  if (name == "step") return take(options.step_bytes, read_size(value), size);
  if (name == "factor") {
    const auto factor = number<u64>(value);
    return take(options.factor, factor && *factor >= 2 ? factor : std::nullopt, "it is 2 or more");
  }
  if (name == "type")
    return take(options.type, type_named(value),
                "it is int8, uint8, int32, int64, half, bfloat16, float or double");
  if (name == "op")
    return take(options.op, op_named(value), "it is sum, prod, min, max, avg, band, bor or bxor");
  if (name == "root") return take(options.root, number<int>(value), "it is a rank");
  if (name == "warmups") return take_at_least(options.warmups, value, 0);
  if (name == "iterations") return take_at_least(options.iterations, value, 1);
  if (name == "check") {
    options.checks = value != "0";
  } else if (name == "register") {
    options.registers = value != "0";
  } else if (name == "rendezvous") {
    options.rendezvous = value;
  } else if (name == "algorithm") {
    options.algorithm = value;
  } else if (name == "table") {
    options.table = value;
  } else if (name == "tune") {
    options.tune = value;
  } else if (name == "timeout") {
    options.timeout_s = number<double>(value).value_or(0);
    if (!(options.timeout_s > 0)) return "it is a number of seconds above 0";
  } else if (name == "predicted") {
    options.predicted_us = read_list(value);
  } else {
    return "there is no such option";
  }
  return "";
}

}  // namespace verbena::perf
