#include "fabric/hpcc_ns3/config.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace verbena::fabric::hpcc_ns3 {
namespace {

template <typename Number>
bool read(Words& words, Number& out) {
  const std::optional<Number> value = words.next_number<Number>();
  if (value) out = *value;
  return value.has_value();
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

// Three numbers that must be 0.
bool read_link_down(Words& words) {
  std::array<double, 3> numbers{};
  for (double& number : numbers)
    if (!read(words, number)) return false;
  return numbers == std::array<double, 3>{};
}

enum class Outcome { kRead, kUnknown, kBad };

Outcome read_key(std::string_view key, Words& words, Config& c) {
  const auto done = [](bool ok) { return ok ? Outcome::kRead : Outcome::kBad; };
  if (key == "TOPOLOGY_FILE") return done(read(words, c.topology_file));
  if (key == "FLOW_FILE") return done(read(words, c.flow_file));
  if (key == "ENABLE_QCN") return done(read(words, c.ecn));
  if (key == "PACKET_PAYLOAD_SIZE")
    return done(read(words, c.packet_payload) && c.packet_payload >= 1 && c.packet_payload <= 4096);
  if (key == "CC_MODE") return done(read(words, c.congestion_control) && c.congestion_control == 1);
  if (key == "ALPHA_RESUME_INTERVAL") return done(read(words, c.alpha_interval_us));
  if (key == "RATE_DECREASE_INTERVAL") return done(read(words, c.decrease_interval_us));
  if (key == "RP_TIMER") return done(read(words, c.increase_interval_us));
  if (key == "CLAMP_TARGET_RATE") return done(read(words, c.clamp_target));
  if (key == "EWMA_GAIN") return done(read(words, c.gain));
  if (key == "FAST_RECOVERY_TIMES") return done(read(words, c.fast_recovery));
  if (key == "RATE_AI") return done(read(words, c.additive_increase));
  if (key == "RATE_HAI") return done(read(words, c.hyper_increase));
  if (key == "MIN_RATE") return done(read(words, c.min_rate));
  if (key == "ERROR_RATE_PER_LINK") return done(read(words, c.error_rate));
  if (key == "HAS_WIN") return done(read(words, c.has_window));
  if (key == "VAR_WIN") return done(read(words, c.variable_window));
  if (key == "ACK_HIGH_PRIO") return done(read(words, c.acknowledgements_first));
  if (key == "KMAX_MAP") return done(read(words, c.k_max));
  if (key == "KMIN_MAP") return done(read(words, c.k_min));
  if (key == "PMAX_MAP") return done(read(words, c.p_max));
  if (key == "BUFFER_SIZE") return done(read(words, c.buffer_mib));
  if (key == "LINK_DOWN") return done(read_link_down(words));
  if (key == "SIMULATOR_STOP_TIME") {
    double seconds = 0;
    if (!read(words, seconds) || !(seconds >= 0 && seconds < 1e6)) return Outcome::kBad;
    c.stop = ns3_duration(seconds);
    return Outcome::kRead;
  }
  return Outcome::kUnknown;
}

struct Unit {
  std::string_view name;
  double factor;
};

// A number with one of these units behind it.
template <std::size_t kUnits>
std::optional<double> parse_with_unit(std::string_view word,
                                      const std::array<Unit, kUnits>& units) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || !(value >= 0)) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(word.data() + word.size() - end));
  for (const Unit& unit : units)
    if (rest == unit.name) return value * unit.factor;
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
  const std::optional<double> bps = parse_with_unit(word, kUnits);
  if (!bps || *bps < 1 || *bps > 1e14) return std::nullopt;
  return Rate::from_bps(static_cast<u64>(std::llround(*bps)));
}

std::optional<Duration> parse_delay(std::string_view word) {
  static constexpr std::array<Unit, 6> kUnits = {
      {{"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}, {"ps", 1}, {"", 1e12}}};
  const std::optional<double> picoseconds = parse_with_unit(word, kUnits);
  if (!picoseconds || *picoseconds > 1e15) return std::nullopt;
  return ps(std::llround(*picoseconds));
}

Parsed<Config> parse_config(std::string_view name, std::string_view text) {
  Words words(name, text);
  Config config;
  while (const std::optional<std::string_view> key = words.next()) {
    switch (read_key(*key, words, config)) {
      case Outcome::kRead: break;
      case Outcome::kUnknown: (void)words.rest_of_line(); break;
      case Outcome::kBad:
        return words.error(*key == "CC_MODE" || *key == "LINK_DOWN"
                               ? fmt::format("{}: this value is not supported", *key)
                               : fmt::format("{}: its value makes no sense", *key));
    }
  }
  return config;
}

}  // namespace verbena::fabric::hpcc_ns3
