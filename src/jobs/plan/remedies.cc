#include "jobs/plan/remedies.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "fabric/results/alone_time.h"
#include "fabric/scenario/units.h"

namespace verbena::jobs {
namespace {

using fabric::Setting;
using fabric::Technology;
using Kind = Remedy::Kind;

constexpr u64 kMostEvents = 60'000'000;  // of a run that is repeated for each remedy
constexpr double kNoticed = 0.001;       // of the time
constexpr u32 kMoreChannels = 4, kMostChannels = 64;

// Frames that overtake each other are no losses to the receiver.
const Setting kReorders{"hosts.retransmission", "{kind: selective_repeat, reordering: 64}"};
const Setting kSprays{"switch.ecmp", "spray"};

std::optional<Remedy> more_channels(const Job& job) {
  const bool is_step = job.shapes.empty();
  const u32 channels = is_step ? job.cutting.channels : job.shapes.front().channels;
  const std::string section = !is_step        ? "collective"
                              : job.training  ? "training"
                              : job.inference ? "inference"
                                              : "chakra";
  const u32 more = std::min(kMoreChannels * channels, kMostChannels);
  if (more == channels) return std::nullopt;
  return Remedy{.name = fmt::format("{} channels", more),
                .cause = Cause::kRouting,
                .settings = {{section + ".channels", std::to_string(more)}}};
}

void add_rocev2(std::vector<Remedy>& remedies) {
  const Setting uncontrolled{"hosts.congestion_control", "off"};
  remedies.push_back({.name = "spraying, with reordering at the NICs",
                      .cause = Cause::kRouting,
                      .settings = {kSprays, kReorders}});
  remedies.push_back(
      {.name = "flowlets",
       .cause = Cause::kRouting,
       .settings = {{"switch.ecmp", "{mode: flowlet, flowlet_gap: 10us}"}, kReorders}});
  remedies.push_back(
      {.name = "PFC alone, no DCQCN", .cause = Cause::kControl, .settings = {uncontrolled}});
  remedies.push_back({.name = "spraying and PFC alone",
                      .cause = Cause::kRouting,
                      .settings = {kSprays, kReorders, uncontrolled}});
  remedies.push_back({.name = "as shipped: DCQCN of NVIDIA's NICs, ECN of SONiC",
                      .cause = Cause::kControl,
                      .kind = Kind::kAsShipped,
                      .settings = {{"hosts.congestion_control", "dcqcn_nvidia"},
                                   {"switch.ecn", "{profile: sonic}"}}});
}

void add_infiniband(std::vector<Remedy>& remedies) {
  remedies.push_back({.name = "adaptive routing, with reordering at the NICs",
                      .cause = Cause::kRouting,
                      .settings = {{"infiniband.routing", "adaptive"}, kReorders}});
  remedies.push_back({.name = "as shipped: min-hop routing, OpenSM's default",
                      .cause = Cause::kRouting,
                      .kind = Kind::kAsShipped,
                      .settings = {{"infiniband.routing", "min_hop"}}});
}

void add_tcp(std::vector<Remedy>& remedies) {
  remedies.push_back({.name = "DCTCP and ECN",
                      .cause = Cause::kControl,
                      .settings = {{"tcp.congestion_control", "dctcp"}}});
  remedies.push_back({.name = "PFC, so that nothing is lost",
                      .cause = Cause::kLosses,
                      .settings = {{"switch.pfc", "on"}}});
}

// tcp_congestion_control of the kernel's documentation, ip-sysctl.rst, is CUBIC where nobody sets
// it, and tcp_ecn asks for no ECN. What iWARP NICs have is not published.
void add_kernel_tcp(std::vector<Remedy>& remedies) {
  add_tcp(remedies);
  remedies.push_back({.name = "as shipped: CUBIC of Linux",
                      .cause = Cause::kControl,
                      .kind = Kind::kAsShipped,
                      .settings = {{"tcp.congestion_control", "cubic"}}});
}

// Returns the part of the frames that is headers and gaps.
double header_share(const Candidate& candidate) {
  const fabric::PacketSizes sizes =
      fabric::packet_sizes(candidate.job.network, candidate.job.network.host({}));
  return static_cast<double>(sizes.header) / static_cast<double>(sizes.header + sizes.payload);
}

const Tried* fastest(const std::vector<Tried>& tried, std::size_t of, Kind kind,
                     std::optional<Cause> cause = std::nullopt) {
  const Tried* best = nullptr;
  for (const Tried& one : tried)
    if (one.of == of && one.remedy.kind == kind && one.is_done() &&
        (!cause || one.remedy.cause == *cause) && (best == nullptr || one.ratio() < best->ratio()))
      best = &one;
  return best;
}

bool helps(const Tried& tried) { return tried.ratio() < 1 - kNoticed; }

std::string share_text(const Candidate& candidate, const std::vector<Tried>& tried,
                       std::size_t place) {
  std::string text;
  for (std::size_t i = 0; i < kCauses; ++i) {
    const Cause cause = static_cast<Cause>(i);
    const Tried* without = fastest(tried, place, Kind::kProbe, cause);
    if (without == nullptr) without = fastest(tried, place, Kind::kSetting, cause);
    if (without == nullptr) continue;
    const double share = 1 - without->ratio();
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", name_of(cause),
                        100 * (share < kNoticed ? 0 : share));
  }
  return text + fmt::format("{}headers {:.1f} % of what the links carry", text.empty() ? "" : ", ",
                            100 * header_share(candidate));
}

Duration time_with(const Candidate& candidate, const Tried& tried) {
  return ps(std::llround(static_cast<double>(candidate.measured.time.ps()) * tried.ratio()));
}

std::string times_text(const Candidate& candidate, const Tried& tried) {
  return fmt::format("{} ({:+.1f} %): {}", fabric::duration_text(time_with(candidate, tried)),
                     100 * (tried.ratio() - 1), tried.remedy.name);
}

}  // namespace

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::kRouting: return "routing collisions";
    case Cause::kControl: return "congestion control";
    case Cause::kLatency: return "switches' latency";
    case Cause::kLosses: return "losses";
  }
  CHECK_UNREACHABLE();
}

std::vector<Remedy> remedies_of(const Candidate& candidate) {
  std::vector<Remedy> remedies;
  if (candidate.job.method == Method::kFlows) return remedies;  // flow-level knows none of them
  const bool is_infiniband = candidate.technology == Technology::kInfiniBand;
  switch (candidate.technology) {
    case Technology::kRoCEv2: add_rocev2(remedies); break;
    case Technology::kInfiniBand: add_infiniband(remedies); break;
    case Technology::kIWARP: add_tcp(remedies); break;
    case Technology::kTCP: add_kernel_tcp(remedies); break;
  }
  if (std::optional<Remedy> more = more_channels(candidate.job)) remedies.push_back(*more);
  const std::string section = is_infiniband ? "infiniband" : "switch";
  remedies.push_back({.name = "switches without latency",
                      .cause = Cause::kLatency,
                      .kind = Kind::kProbe,
                      .settings = {{section + ".forwarding.latency", "0"}}});
  if (!candidate.job.shapes.empty())  // the same algorithm as without
    for (Remedy& remedy : remedies)
      remedy.settings.push_back({"collective.algorithm", candidate.measured.name});
  return remedies;
}

std::vector<Setting> part_of(const Candidate& candidate) {
  const u64 events = candidate.measured.packets.counters.events;
  if (events <= kMostEvents) return {};
  const double part = static_cast<double>(kMostEvents) / static_cast<double>(events);
  const Job& job = candidate.job;
  if (job.training) {
    const u32 stages = job.training->parallel.pipeline;
    const auto layers = static_cast<u32>(part * job.training->model.layers) / stages * stages;
    return {{"training.model.layers", std::to_string(std::max(stages, layers))}};
  }
  if (job.inference) {
    const auto layers = static_cast<u32>(part * job.inference->model.layers);
    return {{"inference.model.layers", std::to_string(std::max(1u, layers))}};
  }
  if (job.shapes.empty()) return {};
  const u64 element = job.shapes.front().element_bytes;
  const auto bytes = static_cast<u64>(part * static_cast<double>(job.shapes.front().bytes));
  return {{"collective.size", std::to_string(std::max(element, bytes / element * element))}};
}

std::optional<TwoParts> two_parts_of(const Job& job, u64 events) {
  const auto of_layers = [](std::string_view section, u32 layers, u32 unit) {
    const std::string key = fmt::format("{}.model.layers", section);
    return TwoParts{.small = {{key, std::to_string(unit)}},
                    .large = {{key, std::to_string(2 * unit)}},
                    .steps = static_cast<double>(layers - unit) / unit,
                    .text = fmt::format("{} and {} layers", unit, 2 * unit)};
  };
  if (job.training) {
    const u32 layers = job.training->model.layers, stages = job.training->parallel.pipeline;
    if (layers <= 2 * stages) return std::nullopt;
    return of_layers("training", layers, stages);
  }
  if (job.inference) {
    if (job.inference->model.layers <= 2) return std::nullopt;
    return of_layers("inference", job.inference->model.layers, 1);
  }
  if (job.shapes.empty()) return std::nullopt;
  const collectives::Shape& shape = job.shapes.front();
  const double part = static_cast<double>(kMostEvents) / static_cast<double>(events);
  const u64 element = shape.element_bytes;
  const u64 small = static_cast<u64>(part * static_cast<double>(shape.bytes)) / element * element;
  if (small == 0 || 2 * small >= shape.bytes) return std::nullopt;
  return TwoParts{.small = {{"collective.size", std::to_string(small)}},
                  .large = {{"collective.size", std::to_string(2 * small)}},
                  .steps = static_cast<double>(shape.bytes - small) / static_cast<double>(small),
                  .text = fmt::format("{} and {}", fabric::bytes_text(static_cast<double>(small)),
                                      fabric::bytes_text(static_cast<double>(2 * small)))};
}

Measured extrapolated(const Measured& small, const Measured& large, const TwoParts& parts) {
  const auto number = [&parts](double a, double b) {
    return std::max(0.0, a + parts.steps * (b - a));
  };
  const auto count = [&number](u64& of_whole, u64 a, u64 b) {
    of_whole =
        static_cast<u64>(std::llround(number(static_cast<double>(a), static_cast<double>(b))));
  };
  const auto time = [&number](Duration a, Duration b) {
    return ps(std::llround(number(static_cast<double>(a.ps()), static_cast<double>(b.ps()))));
  };
  Measured whole = large;
  whole.extrapolated_from = parts.text;
  whole.time = time(small.time, large.time);
  for (MeasuredOperation& operation : whole.operations) {
    const auto before =
        std::ranges::find(small.operations, operation.name, &MeasuredOperation::name);
    if (before != small.operations.end()) operation.all = time(before->all, operation.all);
  }
  const fabric::Counters &a = small.packets.counters, &b = large.packets.counters;
  count(whole.packets.counters.events, a.events, b.events);
  count(whole.packets.counters.pauses, a.pauses, b.pauses);
  count(whole.packets.repairs.retransmissions, small.packets.repairs.retransmissions,
        large.packets.repairs.retransmissions);
  return whole;
}

std::vector<Candidate> best_of_each(const std::vector<Candidate>& candidates,
                                    const std::vector<Tried>& tried) {
  std::vector<Candidate> best = candidates;
  for (std::size_t i = 0; i < best.size(); ++i) {
    const Tried* const one = fastest(tried, i, Kind::kSetting);
    if (one == nullptr || !best[i].is_done() || !helps(*one)) continue;
    const Duration time = time_with(best[i], *one);
    best[i].measured.time = time;
    best[i].variant = one->remedy.name;
  }
  return best;
}

std::string causes_text(const std::vector<Candidate>& candidates, const std::vector<Tried>& tried) {
  std::string text;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (!candidate.is_done()) continue;
    const bool was_tried =
        std::ranges::any_of(tried, [i](const Tried& one) { return one.of == i; });
    if (!was_tried) continue;
    text += fmt::format("  {}: {}\n    lost to {}\n", candidate.name(),
                        fabric::duration_text(candidate.measured.time),
                        share_text(candidate, tried, i));
    const Tried* const best = fastest(tried, i, Kind::kSetting);
    if (best != nullptr && helps(*best))
      text += fmt::format("    at best    {}\n", times_text(candidate, *best));
    if (const Tried* const shipped = fastest(tried, i, Kind::kAsShipped); shipped != nullptr)
      text += fmt::format("    shipped    {}\n", times_text(candidate, *shipped));
  }
  if (text.empty()) return "";
  return "\nWhere the time goes, and what helps (each simulated, one change at a time)\n" + text;
}

}  // namespace verbena::jobs
