#include "fabric/hpcc_ns3/config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace verbena::fabric::hpcc_ns3 {
namespace {

constexpr u64 kMostMicroseconds = 1'000'000'000'000;
constexpr u32 kMostTelemetryUnit = 1000;

template <typename Number>
bool read(Words& words, Number& out) {
  const std::optional<Number> value = words.next_number<Number>();
  if (value) out = *value;
  return value.has_value();
}

// Accepts "32.0", as a script may write it: the model reads 32.
bool read(Words& words, u32& out) {
  const std::optional<std::string_view> word = words.next();
  if (!word) return false;
  const char* const end = word->data() + word->size();
  const auto [rest, error] = std::from_chars(word->data(), end, out);
  if (error != std::errc()) return false;
  return rest == end ||
         (*rest == '.' && std::all_of(rest + 1, end, [](char c) { return c >= '0' && c <= '9'; }));
}

bool read(Words& words, bool& out) {
  u32 number = 0;
  if (!read(words, number)) return false;
  out = number != 0;
  return true;
}

bool read(Words& words, std::string& out) {
  const std::optional<std::string_view> word = words.next();
  if (word) out = *word;
  return word.has_value();
}

bool read(Words& words, Rate& out) {
  const std::optional<std::string_view> word = words.next();
  const std::optional<Rate> rate = word ? parse_rate(*word) : std::nullopt;
  if (rate) out = *rate;
  return rate.has_value();
}

// A count, then pairs.
template <typename Value>
bool read(Words& words, std::map<u64, Value>& out) {
  u32 count = 0;
  if (!read(words, count)) return false;
  for (; count != 0; --count) {
    u64 rate = 0;
    if (!read(words, rate) || !read(words, out[rate])) return false;
  }
  return true;
}

// Reads the time in microseconds, and the two nodes; all 0 means never.
bool read(Words& words, std::optional<LinkDown>& out) {
  const std::optional<u64> after = words.next_number<u64>();
  const std::optional<u32> a = words.next_number<u32>(), b = words.next_number<u32>();
  if (!after || !a || !b || *after > kMostMicroseconds) return false;
  if (*after != 0) out = LinkDown{.after = us(static_cast<i64>(*after)), .a = *a, .b = *b};
  return true;
}

bool read(Words& words, Control& out) {
  const std::optional<u32> mode = words.next_number<u32>();
  if (!mode) return false;
  for (const Control control :
       {Control::kNone, Control::kDCQCN, Control::kHPCC, Control::kTIMELY, Control::kDCTCP})
    if (*mode == static_cast<u32>(control)) {
      out = control;
      return true;
    }
  return false;
}

bool read_stop(Words& words, Duration& out) {
  double seconds = 0;
  if (!read(words, seconds) || !(seconds >= 0 && seconds < 1e6)) return false;
  out = ns3_duration(seconds);
  return true;
}

enum class Outcome { kRead, kUnknown, kBad };

Outcome outcome(bool ok) { return ok ? Outcome::kRead : Outcome::kBad; }

Outcome read_control_key(std::string_view key, Words& words, Config& c) {
  if (key == "CC_MODE") return outcome(read(words, c.control));
  if (key == "ALPHA_RESUME_INTERVAL") return outcome(read(words, c.alpha_interval_us));
  if (key == "RATE_DECREASE_INTERVAL") return outcome(read(words, c.decrease_interval_us));
  if (key == "RP_TIMER") return outcome(read(words, c.increase_interval_us));
  if (key == "CLAMP_TARGET_RATE") return outcome(read(words, c.clamp_target));
  if (key == "EWMA_GAIN") return outcome(read(words, c.gain));
  if (key == "FAST_RECOVERY_TIMES") return outcome(read(words, c.fast_recovery));
  if (key == "RATE_AI") return outcome(read(words, c.additive_increase));
  if (key == "RATE_HAI") return outcome(read(words, c.hyper_increase));
  if (key == "MIN_RATE") return outcome(read(words, c.min_rate));
  if (key == "DCTCP_RATE_AI") return outcome(read(words, c.dctcp_increase));
  if (key == "HAS_WIN") return outcome(read(words, c.has_window));
  if (key == "VAR_WIN") return outcome(read(words, c.variable_window));
  if (key == "GLOBAL_T") return outcome(read(words, c.global_window));
  if (key == "RATE_BOUND") return outcome(read(words, c.paced));
  if (key == "FAST_REACT") return outcome(read(words, c.reacts_to_each_ack));
  if (key == "MULTI_RATE") return outcome(read(words, c.rate_for_each_hop));
  if (key == "U_TARGET") return outcome(read(words, c.target_utilization));
  if (key == "MI_THRESH") return outcome(read(words, c.max_stage));
  if (key == "INT_MULTI")
    return outcome(read(words, c.telemetry_unit) && c.telemetry_unit >= 1 &&
                   c.telemetry_unit <= kMostTelemetryUnit);
  if (key == "SAMPLE_FEEDBACK") return outcome(read(words, c.samples_feedback));
  return Outcome::kUnknown;
}

Outcome read_key(std::string_view key, Words& words, Config& c) {
  if (key == "TOPOLOGY_FILE") return outcome(read(words, c.topology_file));
  if (key == "FLOW_FILE") return outcome(read(words, c.flow_file));
  if (key == "SIMULATOR_STOP_TIME") return outcome(read_stop(words, c.stop));
  if (key == "ENABLE_QCN") return outcome(read(words, c.ecn));
  if (key == "PACKET_PAYLOAD_SIZE")
    return outcome(read(words, c.packet_payload) && c.packet_payload >= 1 &&
                   c.packet_payload <= 4096);
  if (key == "L2_ACK_INTERVAL") return outcome(read(words, c.ack_interval));
  if (key == "L2_BACK_TO_ZERO") return outcome(read(words, c.back_to_zero));
  if (key == "ERROR_RATE_PER_LINK")
    return outcome(read(words, c.error_rate) && c.error_rate >= 0 && c.error_rate <= 1);
  if (key == "ACK_HIGH_PRIO") return outcome(read(words, c.acknowledgements_first));
  if (key == "KMAX_MAP") return outcome(read(words, c.k_max));
  if (key == "KMIN_MAP") return outcome(read(words, c.k_min));
  if (key == "PMAX_MAP") return outcome(read(words, c.p_max));
  if (key == "BUFFER_SIZE") return outcome(read(words, c.buffer_mib));
  if (key == "LINK_DOWN") return outcome(read(words, c.link_down));
  return read_control_key(key, words, c);
}

std::string what_is_wrong(std::string_view key) {
  if (key == "CC_MODE")
    return "CC_MODE: not supported; there is 0 (none), 1 (DCQCN), 3 (HPCC), 7 (TIMELY), 8 (DCTCP)";
  return fmt::format("{}: its value makes no sense", key);
}

struct Unit {
  std::string_view name;
  double factor;
};

// A number with one of these units behind it.
template <typename Result, std::size_t kUnits>
std::optional<Result> parse_with_unit(std::string_view word,
                                      const std::array<Unit, kUnits>& units) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || !(value >= 0)) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(word.data() + word.size() - end));
  for (const Unit& unit : units)
    if (rest == unit.name) return static_cast<Result>(value) * unit.factor;
  return std::nullopt;
}

}  // namespace

std::optional<Rate> parse_rate(std::string_view word) {
  static constexpr std::array<Unit, 9> kUnits = {{{"", 1},
                                                  {"bps", 1},
                                                  {"b/s", 1},
                                                  {"Kbps", 1e3},
                                                  {"kb/s", 1e3},
                                                  {"Mbps", 1e6},
                                                  {"Mb/s", 1e6},
                                                  {"Gbps", 1e9},
                                                  {"Gb/s", 1e9}}};
  const std::optional<double> bps = parse_with_unit<double>(word, kUnits);
  if (!bps || *bps < 1 || *bps > 1e14) return std::nullopt;
  return Rate::from_bps(static_cast<u64>(std::llround(*bps)));
}

std::optional<Duration> parse_delay(std::string_view word) {
  static constexpr std::array<Unit, 6> kUnits = {
      {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"ps", 1e-3}, {"", 1e9}}};
  // With more places than a double has: 0.3us is a little less than 300 ns, and so 299.
  const std::optional<long double> nanoseconds = parse_with_unit<long double>(word, kUnits);
  if (!nanoseconds || *nanoseconds > 1e12L) return std::nullopt;
  return ns(static_cast<i64>(*nanoseconds));
}

Parsed<Config> parse_config(std::string_view name, std::string_view text) {
  Words words(name, text);
  Config config;
  while (const std::optional<std::string_view> key = words.next()) {
    switch (read_key(*key, words, config)) {
      case Outcome::kRead: break;
      case Outcome::kUnknown: break;  // nor is what follows it, up to the next key
      case Outcome::kBad: return words.error(what_is_wrong(*key));
    }
  }
  return config;
}

std::vector<std::string> differences(const Config& config) {
  std::vector<std::string> all;
  if (config.ack_interval == 0)
    all.emplace_back("L2_ACK_INTERVAL 0 is run as 1; in that model no flow ends with it");
  if (config.ack_interval > config.packet_payload)
    all.push_back(fmt::format(
        "L2_ACK_INTERVAL {} is run as 1; in that model a flow's packets are acknowledged from that "
        "byte on, and shorter flows may never end",
        config.ack_interval));
  if (config.back_to_zero)
    all.emplace_back(
        "L2_BACK_TO_ZERO 1 is run as 0: after a loss a sender goes back to the lost packet, not to "
        "its chunk, and flows of any length end");
  if (config.samples_feedback && config.control == Control::kHPCC)
    all.emplace_back("SAMPLE_FEEDBACK 1 is run as 0: hops without a queue count too");
  return all;
}

}  // namespace verbena::fabric::hpcc_ns3
