#include "fabric/scenario/congestion.h"

#include <algorithm>

#include <fmt/format.h>

#include "congestion/presets.h"
#include "fabric/scenario/units.h"

namespace verbena::fabric {
namespace {

// Ranges are those that the headers of the algorithms name.
constexpr Rate kLeastRate = kbps(1);

Rate rate_within(Section& s, std::string_view key, Rate fallback, Rate least, Rate most) {
  const Rate rate = s.rate(key, fallback);
  if (!s.has(key) || (rate >= least && rate <= most)) return rate;
  const std::string from = rate_text(static_cast<double>(least.bps()));
  s.complain(key, most == Rate::unlimited()
                      ? fmt::format("it is {} at least", from)
                      : fmt::format("it is {} .. {}, the line's rate", from,
                                    rate_text(static_cast<double>(most.bps()))));
  return fallback;
}

Duration time_within(Section& s, std::string_view key, Duration fallback, Duration least,
                     Duration most) {
  const Duration time = s.duration(key, fallback);
  if (!s.has(key) || (time >= least && time <= most)) return time;
  s.complain(key, fmt::format("it is {} .. {}", duration_text(least), duration_text(most)));
  return fallback;
}

// Values that the file gives replace those of the preset.
void read(Section& s, UncontrolledParameters&) { (void)s; }
void read(Section& s, ConstantRateParameters&) { (void)s; }

void read(Section& s, DCQCNParameters& p) {
  static constexpr std::string_view kDecrease[] = {"at_cnp", "periodic"};
  static constexpr std::string_view kClamp[] = {"always", "after_increase"};
  p.min_rate = rate_within(s, "min_rate", p.min_rate, kLeastRate, p.line_rate);
  p.decrease = static_cast<DCQCNParameters::Decrease>(
      s.choice("decrease", static_cast<std::size_t>(p.decrease), kDecrease));
  p.clamp = static_cast<DCQCNParameters::Clamp>(
      s.choice("clamp", static_cast<std::size_t>(p.clamp), kClamp));
  const bool is_periodic = p.decrease == DCQCNParameters::Decrease::kPeriodic;
  p.decrease_interval =
      time_within(s, "decrease_interval", p.decrease_interval, is_periodic ? ns(1) : ns(0), sec(1));
  p.g = s.number("g", p.g, 1.0 / 1024, 1);
  p.initial_alpha = s.number("initial_alpha", p.initial_alpha, 0, 1);
  p.alpha_interval = time_within(s, "alpha_interval", p.alpha_interval, ns(1), sec(1));
  p.increase_interval = time_within(s, "increase_interval", p.increase_interval, ns(1), sec(10));
  p.byte_counter = s.bytes("byte_counter", p.byte_counter);
  p.fast_recovery = static_cast<u32>(s.count("fast_recovery", p.fast_recovery, 0, 1000));
  p.additive_increase =
      rate_within(s, "additive_increase", p.additive_increase, mbps(1), Rate::unlimited());
  p.hyper_increase = rate_within(s, "hyper_increase", p.hyper_increase, mbps(1), Rate::unlimited());
}

void read(Section& s, TIMELYParameters& p) {
  p.min_rate = rate_within(s, "min_rate", p.min_rate, kLeastRate, p.line_rate);
  p.alpha = s.number("alpha", p.alpha, 0, 1);
  p.beta = s.number("beta", p.beta, 0, 1);
  p.delta = rate_within(s, "delta", p.delta, kLeastRate, Rate::unlimited());
  p.t_high = s.duration("t_high", p.t_high);
  p.t_low = time_within(s, "t_low", p.t_low, ns(0), p.t_high);
  p.min_rtt = time_within(s, "min_rtt", p.min_rtt, ns(1), sec(1));
}

void read(Section& s, SwiftParameters& p) {
  p.base_target = time_within(s, "base_target", p.base_target, ns(1), sec(10));
  p.flow_scaling_range = s.duration("flow_scaling_range", p.flow_scaling_range);
  p.additive_increase = s.number("additive_increase", p.additive_increase, 1e-6, 1e6);
  p.beta = s.number("beta", p.beta, 0, 1);
  p.max_decrease = s.number("max_decrease", p.max_decrease, 0, 0.999);
  p.max_window = p.longest_useful_window();
}

void read(Section& s, HPCCParameters& p) {
  p.min_rate = rate_within(s, "min_rate", p.min_rate, kLeastRate, p.line_rate);
  p.base_rtt = time_within(s, "base_rtt", p.base_rtt, ns(1), sec(10));
  p.eta = s.number("eta", p.eta, 0.001, 1);
  p.max_stage = static_cast<u32>(s.count("max_stage", p.max_stage, 0, 1000));
  p.additive_bytes =
      static_cast<double>(s.bytes("additive_bytes", static_cast<u64>(p.additive_bytes)));
}

void read(Section& s, DCTCPParameters& p) {
  p.min_rate = rate_within(s, "min_rate", p.min_rate, kLeastRate, p.line_rate);
  p.g = s.number("g", p.g, 1.0 / 1024, 1);
  p.additive_increase =
      rate_within(s, "additive_increase", p.additive_increase, kLeastRate, Rate::unlimited());
}

void read(Section& s, IBCCParameters& p) {
  constexpr u32 kMost = IBCCParameters::kMostEntries - 1;
  p.ccti_increase = static_cast<u32>(s.count("ccti_increase", p.ccti_increase, 1, kMost));
  p.ccti_min = static_cast<u32>(s.count("ccti_min", p.ccti_min, 0, kMost));
  p.ccti_limit = static_cast<u32>(s.count("ccti_limit", p.ccti_limit, p.ccti_min, kMost));
  p.ccti_timer = time_within(s, "ccti_timer", p.ccti_timer, ns(1024), sec(1));
  p.cct_step = s.number("cct_step", p.cct_step, 0.125, 64);
}

CongestionParameters read_all(Section& section, CongestionParameters parameters) {
  std::visit([&](auto& algorithm) { read(section, algorithm); }, parameters.algorithm);
  WindowParameters& window = parameters.window;
  window.bytes = section.bytes("window", window.bytes);
  if (section.has("window")) window.kind = WindowParameters::Kind::kFixed;
  if (!window.valid()) section.complain("window", "it is 1 B .. 100 MB");
  parameters.notification.cnp_interval =
      time_within(section, "cnp_interval", parameters.notification.cnp_interval, ns(0), sec(1));
  return parameters;
}

}  // namespace

CongestionParameters usual_preset(std::string_view name, Rate line_rate) {
  return *congestion_named(name, line_rate);
}

std::vector<Rate> rates_of_hosts(const Topology& topology) {
  std::vector<Rate> rates;
  for (const TopologyLink& link : topology.links)
    for (const NodeIndex node : {link.a, link.b})
      if (!topology.is_switch[node] && std::ranges::find(rates, link.config.rate) == rates.end())
        rates.push_back(link.config.rate);
  return rates;
}

CongestionSettings read_congestion(Section section, std::vector<Rate> line_rates,
                                   std::string_view usual, const CongestionPresets& presets) {
  const std::span<const std::string_view> names = congestion_names();
  const auto fallback = static_cast<std::size_t>(std::ranges::find(names, usual) - names.begin());
  const std::string_view name = names[section.choice("algorithm", fallback, names)];
  std::vector<std::pair<Rate, CongestionParameters>> settings;
  for (const Rate rate : line_rates) {
    settings.emplace_back(rate, read_all(section, presets(name, rate)));
    if (!settings.back().second.valid())
      section.complain({}, fmt::format("a setting is out of its range, for a line of {}",
                                       rate_text(static_cast<double>(rate.bps()))));
  }
  section.done();
  return [settings](Rate line_rate) {
    const auto found =
        std::ranges::find(settings, line_rate, &std::pair<Rate, CongestionParameters>::first);
    return found != settings.end() ? found->second : CongestionParameters{};
  };
}

}  // namespace verbena::fabric
