#include "fabric/scenario/congestion.h"

#include <algorithm>

#include <fmt/format.h>

#include "congestion/presets.h"
#include "fabric/scenario/units.h"

namespace verbena::fabric {
namespace {

// What is given replaces what the preset has.
void read(Section& s, UncontrolledParameters&) { (void)s; }
void read(Section& s, ConstantRateParameters&) { (void)s; }

void read(Section& s, DCQCNParameters& p) {
  static constexpr std::string_view kDecrease[] = {"at_cnp", "periodic"};
  static constexpr std::string_view kClamp[] = {"always", "after_increase"};
  p.min_rate = s.rate("min_rate", p.min_rate);
  p.decrease = static_cast<DCQCNParameters::Decrease>(
      s.choice("decrease", static_cast<std::size_t>(p.decrease), kDecrease));
  p.clamp = static_cast<DCQCNParameters::Clamp>(
      s.choice("clamp", static_cast<std::size_t>(p.clamp), kClamp));
  p.decrease_interval = s.duration("decrease_interval", p.decrease_interval);
  p.g = s.number("g", p.g, 0, 1);
  p.initial_alpha = s.number("initial_alpha", p.initial_alpha, 0, 1);
  p.alpha_interval = s.duration("alpha_interval", p.alpha_interval);
  p.increase_interval = s.duration("increase_interval", p.increase_interval);
  p.byte_counter = s.octets("byte_counter", p.byte_counter);
  p.fast_recovery = static_cast<u32>(s.count("fast_recovery", p.fast_recovery, 0, 1000));
  p.additive_increase = s.rate("additive_increase", p.additive_increase);
  p.hyper_increase = s.rate("hyper_increase", p.hyper_increase);
}

void read(Section& s, TIMELYParameters& p) {
  p.min_rate = s.rate("min_rate", p.min_rate);
  p.alpha = s.number("alpha", p.alpha, 0, 1);
  p.beta = s.number("beta", p.beta, 0, 1);
  p.delta = s.rate("delta", p.delta);
  p.t_low = s.duration("t_low", p.t_low);
  p.t_high = s.duration("t_high", p.t_high);
  p.min_rtt = s.duration("min_rtt", p.min_rtt);
}

void read(Section& s, SwiftParameters& p) {
  p.base_target = s.duration("base_target", p.base_target);
  p.flow_scaling_range = s.duration("flow_scaling_range", p.flow_scaling_range);
  p.additive_increase = s.number("additive_increase", p.additive_increase, 0, 1e6);
  p.beta = s.number("beta", p.beta, 0, 1);
  p.max_decrease = s.number("max_decrease", p.max_decrease, 0, 1);
}

void read(Section& s, HPCCParameters& p) {
  p.min_rate = s.rate("min_rate", p.min_rate);
  p.base_rtt = s.duration("base_rtt", p.base_rtt);
  p.eta = s.number("eta", p.eta, 0, 1);
  p.max_stage = static_cast<u32>(s.count("max_stage", p.max_stage, 0, 1000));
  p.additive_octets =
      static_cast<double>(s.octets("additive_octets", static_cast<u64>(p.additive_octets)));
}

void read(Section& s, DCTCPParameters& p) {
  p.min_rate = s.rate("min_rate", p.min_rate);
  p.g = s.number("g", p.g, 0, 1);
  p.additive_increase = s.rate("additive_increase", p.additive_increase);
}

void read(Section& s, IBCCParameters& p) {
  constexpr u32 kMost = IBCCParameters::kMostEntries - 1;
  p.ccti_increase = static_cast<u32>(s.count("ccti_increase", p.ccti_increase, 1, kMost));
  p.ccti_limit = static_cast<u32>(s.count("ccti_limit", p.ccti_limit, 0, kMost));
  p.ccti_min = static_cast<u32>(s.count("ccti_min", p.ccti_min, 0, kMost));
  p.ccti_timer = s.duration("ccti_timer", p.ccti_timer);
  p.cct_step = s.number("cct_step", p.cct_step, 0.125, 64);
}

CongestionParameters read_all(Section& section, CongestionParameters parameters) {
  std::visit([&](auto& algorithm) { read(section, algorithm); }, parameters.algorithm);
  WindowParameters& window = parameters.window;
  window.octets = section.octets("window", window.octets);
  if (section.has("window")) window.kind = WindowParameters::Kind::kFixed;
  parameters.notification.cnp_interval =
      section.duration("cnp_interval", parameters.notification.cnp_interval);
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
