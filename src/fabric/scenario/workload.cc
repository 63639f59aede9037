#include <array>

#include <fmt/format.h>

#include "fabric/hpcc_ns3/scenario.h"
#include "fabric/scenario/parts.h"
#include "fabric/scenario/units.h"
#include "fabric/workloads/all_to_all.h"
#include "fabric/workloads/incast.h"
#include "fabric/workloads/permutation.h"
#include "fabric/workloads/poisson.h"

namespace verbena::fabric {
namespace {

using Flows = std::vector<Flow>;
constexpr u64 kMostBytes = u64{1} << 50;

std::optional<NodeIndex> host_named(Section& section, std::string_view key, const Plan& plan,
                                    const std::string& name) {
  const std::optional<NodeIndex> host = plan.host_named(name);
  if (!host)
    section.complain(
        key, fmt::format("there is no host '{}'; hosts are {} .. {}, or by number 0 .. {}", name,
                         plan.names[plan.hosts.front()], plan.names[plan.hosts.back()],
                         plan.hosts.size() - 1));
  return host;
}

u64 size(Section& section, u64 fallback) {
  const u64 bytes = section.bytes("size", fallback, 1);
  if (bytes <= kMostBytes) return bytes;
  section.complain("size", "a petabyte is the most");
  return fallback;
}

Time start(Section& section) { return Time() + section.duration("start", {}); }

Flows read_incast(Section& section, const WorkloadContext& context, PRNG&) {
  const Plan& plan = context.plan;
  Incast spec;
  spec.bytes = size(section, 1'000'000);
  spec.start = start(section);
  spec.stagger = section.duration("stagger", {});
  spec.to = host_named(section, "to", plan, section.text("to", plan.names[plan.hosts[0]]))
                .value_or(plan.hosts[0]);
  for (const std::string& name : section.texts("from"))
    if (const auto from = host_named(section, "from", plan, name)) {
      if (*from == spec.to) section.complain("from", fmt::format("{} sends to itself", name));
      spec.from.push_back(*from);
    }
  const u64 others = plan.hosts.size() - 1;
  const u64 senders = section.count("senders", others, 1, others);
  if (!spec.from.empty() && section.has("senders"))
    section.complain("senders", "either how many senders, or which: from");
  if (spec.from.empty())
    for (const NodeIndex host : plan.hosts)
      if (host != spec.to && spec.from.size() < senders) spec.from.push_back(host);
  return incast(spec);
}

Flows read_permutation(Section& section, const WorkloadContext& context, PRNG& prng) {
  const u64 bytes = size(section, 1'000'000);
  return permutation(context.plan, bytes, start(section), prng);
}

Flows read_all_to_all(Section& section, const WorkloadContext& context, PRNG&) {
  const u64 bytes = size(section, 100'000);
  return all_to_all(context.plan, bytes, start(section));
}

// A name, a file, or one size for all.
std::optional<SizeDistribution> read_sizes(Section& section, const WorkloadContext& context) {
  const std::string word = section.text("sizes", "websearch");
  if (auto named = SizeDistribution::named(word)) return named;
  if (const std::optional<u64> bytes = bytes_of(word); bytes && *bytes > 0)
    return SizeDistribution::always(*bytes);
  const Parsed<std::string> text = context.read_file(word);
  if (!text) {
    section.complain("sizes", fmt::format("'{}' is neither websearch or hadoop, nor a size, nor a "
                                          "file ({})",
                                          word, text.error().message));
    return std::nullopt;
  }
  Parsed<SizeDistribution> sizes = SizeDistribution::parse(word, *text);
  if (sizes) return *std::move(sizes);
  section.complain("sizes", sizes.error().message);
  return std::nullopt;
}

Flows read_poisson(Section& section, const WorkloadContext& context, PRNG& prng) {
  const std::optional<SizeDistribution> sizes = read_sizes(section, context);
  const double load = section.number("load", 0.3, 0.0001, 2);
  const Time begin = start(section);
  const Duration usual =
      context.end == Time::never() ? ms(1) : std::max(Duration(), context.end - begin);
  const Duration duration = section.duration("duration", usual);
  if (!sizes) return {};
  const Poisson arrivals{.sizes = *sizes, .load = load, .start = begin, .duration = duration};
  const double expected = expected_flows(context.plan, arrivals);
  // Their number is random, but among so many it does not differ by a hundredth.
  if (expected * 1.01 < static_cast<double>(Poisson::kMostFlows))
    return poisson(context.plan, arrivals, prng);
  section.complain("duration",
                   fmt::format("about {:.3g} million flows begin, and {} million are the "
                               "most: make it shorter, or the load smaller",
                               expected / 1e6, Poisson::kMostFlows / 1'000'000));
  return {};
}

Flows read_flow_file(Section& section, const WorkloadContext& context) {
  const std::string file = section.text("file", "");
  const Parsed<std::string> text = context.read_file(file);
  if (!text) {
    section.complain("file", text.error().message);
    return {};
  }
  Parsed<Flows> flows = hpcc_ns3::parse_flows(file, *text, context.plan.topology);
  if (flows) return *std::move(flows);
  section.complain("file", flows.error().message);
  return {};
}

// One by one in the scenario, or in a file as HPCC's ns-3 model has it.
Flows read_flows(Section& section, const WorkloadContext& context, PRNG&) {
  if (section.has("file")) return read_flow_file(section, context);
  Flows flows;
  for (Section item : section.sections("flows")) {
    const auto from = host_named(item, "from", context.plan, item.text("from", "0"));
    const auto to = host_named(item, "to", context.plan, item.text("to", "1"));
    const u64 bytes = size(item, 1'000'000);
    const Time begin = start(item);
    const u64 priority = item.count("priority", Flow{}.priority, 0, 7);
    item.done();
    if (!from || !to) continue;
    if (*from == *to) item.complain("to", "a flow goes from a host to another one");
    flows.push_back({.source = *from,
                     .destination = *to,
                     .bytes = bytes,
                     .start = begin,
                     .priority = static_cast<u8>(priority)});
  }
  if (flows.empty())
    section.complain("flows", "which? flows: [{from: 0, to: 1, size: 1MB}], or file: flow.txt");
  return flows;
}

struct WorkloadKind {
  std::string_view name;
  Flows (*read)(Section&, const WorkloadContext&, PRNG&);
};
constexpr std::array kWorkloads = {
    WorkloadKind{"incast", read_incast},         WorkloadKind{"permutation", read_permutation},
    WorkloadKind{"all_to_all", read_all_to_all}, WorkloadKind{"poisson", read_poisson},
    WorkloadKind{"flows", read_flows},
};

}  // namespace

void read_workload(Section section, const WorkloadContext& context, PRNG& prng,
                   std::vector<Flow>& flows) {
  std::vector<std::string_view> names;
  for (const WorkloadKind& kind : kWorkloads) names.push_back(kind.name);
  if (!section.has("kind")) {  // which keys there are depends on it
    section.complain("kind", fmt::format("of what kind? {}", one_of({names.begin(), names.end()})));
    return;
  }
  const std::size_t kind = section.choice("kind", names.size(), names);
  if (kind == names.size()) return;
  const u64 priority = section.count("priority", Flow{}.priority, 0, 7);
  Flows made = kWorkloads[kind].read(section, context, prng);
  if (section.has("priority"))
    for (Flow& flow : made) flow.priority = static_cast<u8>(priority);
  section.done();
  flows.insert(flows.end(), made.begin(), made.end());
}

}  // namespace verbena::fabric
