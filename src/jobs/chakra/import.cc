#include "jobs/chakra/import.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "jobs/chakra/rehearsal.h"

namespace verbena::jobs::chakra {
namespace {

// Parties of one kind and size, no rank in two of them.
struct Union {
  Party::Kind kind = Party::Kind::kGroup;
  std::vector<std::string> names;
  std::vector<std::vector<u32>> groups;
  std::vector<bool> has;  // by rank

  [[nodiscard]] bool takes(const Party& party) const {
    return party.kind == kind && groups.front().size() == party.ranks.size() &&
           std::ranges::none_of(party.ranks, [&](u32 rank) { return has[rank]; });
  }
  void add(const Party& party) {
    names.push_back(party.name);
    groups.push_back(party.ranks);
    for (const u32 rank : party.ranks) has[rank] = true;
  }
  [[nodiscard]] std::string name() const {
    if (kind == Party::Kind::kPair) return "messages";
    if (groups.size() > 1) return fmt::format("groups {} to {}", names.front(), names.back());
    return names[0].empty() ? "all" : "group " + names[0];
  }
};

// Communicators of the builder, by party.
std::vector<u32> add_communicators(const std::vector<Party>& parties, u32 ranks,
                                   PartsBuilder& builder) {
  std::vector<Union> unions;
  std::vector<std::size_t> union_of;
  for (const Party& party : parties) {
    auto at = std::ranges::find_if(unions, [&](const Union& one) { return one.takes(party); });
    if (at == unions.end()) at = unions.insert(at, {party.kind, {}, {}, std::vector<bool>(ranks)});
    at->add(party);
    union_of.push_back(static_cast<std::size_t>(at - unions.begin()));
  }
  std::vector<u32> communicators, result;
  for (Union& one : unions) {
    std::string name = one.name();
    communicators.push_back(builder.add_communicator(std::move(name), std::move(one.groups)));
  }
  for (const std::size_t number : union_of) result.push_back(communicators[number]);
  return result;
}

// A rank's tasks, item after item.
class Writer {
 public:
  Writer(const RankGraph& graph, const Exchanges& exchanges, const std::vector<u32>& communicators,
         PartsBuilder& builder)
      : graph_(graph), exchanges_(exchanges), communicators_(communicators), builder_(builder) {}

  void write(const std::vector<u32>& order) {
    builder_.begin_role();
    latest_.resize(graph_.items.size());
    for (const u32 number : order) add(number);
  }

 private:
  // The last task of each lane that there is to wait for.
  using Latest = std::map<u32, u32>;
  static constexpr u32 kCPULane = ~u32{0} - 1, kGPULane = ~u32{0};

  void add(u32 number) {
    const Item& item = graph_.items[number];
    Latest before;
    for (const u32 one : item.after)
      for (const auto& [lane, task] : latest_[one]) {
        u32& last = before.emplace(lane, task).first->second;
        last = std::max(last, task);
      }
    if (!item.computes() && item.exchange == Item::kNone) {
      latest_[number] = std::move(before);
      return;
    }
    std::vector<u32> after;
    for (const auto& [lane, task] : before) after.push_back(task);
    latest_[number] =
        item.computes() ? compute(item, std::move(after)) : exchange(item, std::move(after));
  }

  Latest compute(const Item& item, std::vector<u32> after) {
    const Node& node = *item.node;
    if (node.is_of_cpu) {
      const u32 task = builder_.compute(node.name, Purpose::kHost, item.lasts, std::move(after));
      builder_.last().unit = Task::Unit::kCPU;
      return {{kCPULane, task}};
    }
    const Purpose purpose = node.kind == Node::Kind::kMemory ? Purpose::kMemory : Purpose::kKernel;
    return {{kGPULane, builder_.compute(node.name, purpose, item.lasts, std::move(after))}};
  }

  Latest exchange(const Item& item, std::vector<u32> after) {
    const Exchange& exchange = exchanges_.all[item.exchange];
    const u32 communicator = communicators_[exchange.party];
    const Purpose purpose = exchanges_.parties[exchange.party].kind == Party::Kind::kPair
                                ? Purpose::kMessage
                                : Purpose::kCollective;
    const u32 operation =
        builder_.operation(communicator, exchange.operation, exchange.bytes, exchange.root);
    return {
        {communicator, builder_.operate(item.node->name, purpose, operation, std::move(after))}};
  }

  const RankGraph& graph_;
  const Exchanges& exchanges_;
  const std::vector<u32>& communicators_;
  PartsBuilder& builder_;
  std::vector<Latest> latest_;  // by item
};

}  // namespace

fabric::Parsed<ProgramParts> import_traces(const std::vector<Trace>& traces, ProcessGroups groups,
                                           const GPU& gpu, u32 ranks_per_node,
                                           const Cutting& cutting) {
  std::vector<RankGraph> ranks;
  for (const Trace& trace : traces) {
    fabric::Parsed<RankGraph> graph = graph_of(trace, gpu);
    if (!graph) return tl::unexpected(graph.error());
    ranks.push_back(*std::move(graph));
    groups.insert(trace.groups.begin(), trace.groups.end());
  }
  const fabric::Parsed<Exchanges> exchanges = find_exchanges(ranks, groups);
  if (!exchanges) return tl::unexpected(exchanges.error());
  const Rehearsal rehearsal = rehearse(ranks, *exchanges);
  if (!rehearsal.mistake.empty()) return tl::unexpected(fabric::InputError{rehearsal.mistake});
  const u32 size = static_cast<u32>(traces.size());
  PartsBuilder builder(size, ranks_per_node, cutting);
  const std::vector<u32> communicators = add_communicators(exchanges->parties, size, builder);
  for (u32 rank = 0; rank < size; ++rank)
    Writer(ranks[rank], *exchanges, communicators, builder).write(rehearsal.orders[rank]);
  std::vector<u32> roles(size);
  std::iota(roles.begin(), roles.end(), 0);
  return builder.take(std::move(roles));
}

}  // namespace verbena::jobs::chakra
