#include "jobs/chakra/rank_graph.h"

#include <functional>
#include <queue>
#include <unordered_map>

#include <fmt/format.h>

namespace verbena::jobs::chakra {
namespace {

constexpr double kMostSeconds = 1e6;  // that a rank computes

tl::unexpected<fabric::InputError> wrong(const Trace& trace, const Node& node,
                                         const std::string& what) {
  return tl::unexpected(fabric::InputError{place_of(trace, node) + what});
}

// Nodes by their places in the file.
struct Links {
  std::vector<std::vector<u32>> before, behind;

  void add(u32 first, u32 second) {
    before[second].push_back(first);
    behind[first].push_back(second);
  }
};

fabric::Parsed<Links> links_of(const Trace& trace) {
  std::unordered_map<u64, u32> places;
  for (const Node& node : trace.nodes)
    if (!places.emplace(node.id, static_cast<u32>(places.size())).second)
      return wrong(trace, node, "another one has this id");
  Links links{.before = std::vector<std::vector<u32>>(trace.nodes.size()),
              .behind = std::vector<std::vector<u32>>(trace.nodes.size())};
  for (u32 place = 0; place < trace.nodes.size(); ++place)
    for (const u64 id : trace.nodes[place].after) {
      const auto found = places.find(id);
      if (found == places.end())
        return wrong(trace, trace.nodes[place],
                     fmt::format("it comes after node {}, which is not there", id));
      links.add(found->second, place);
    }
  return links;
}

// Places in their new order: fewer than there are where some wait for themselves.
std::vector<u32> order_of(const Trace& trace, const Links& links) {
  const auto comes_later = [&](u32 a, u32 b) { return trace.nodes[a].id > trace.nodes[b].id; };
  std::priority_queue<u32, std::vector<u32>, decltype(comes_later)> next(comes_later);
  std::vector<std::size_t> missing;
  for (u32 place = 0; place < trace.nodes.size(); ++place) {
    missing.push_back(links.before[place].size());
    if (missing.back() == 0) next.push(place);
  }
  std::vector<u32> order;
  while (!next.empty()) {
    order.push_back(next.top());
    next.pop();
    for (const u32 place : links.behind[order.back()])
      if (--missing[place] == 0) next.push(place);
  }
  return order;
}

// Returns a node of a cycle. Precondition: `order` lacks some nodes.
u32 waits_for_itself(const Links& links, const std::vector<u32>& order) {
  std::vector<bool> is_done(links.before.size()), is_met(links.before.size());
  for (const u32 place : order) is_done[place] = true;
  u32 at = 0;
  while (is_done[at]) ++at;
  while (!is_met[at]) {
    is_met[at] = true;
    for (const u32 before : links.before[at])
      if (!is_done[before]) at = before;
  }
  return at;
}

double seconds_of(const Node& node, const GPU& gpu) {
  const bool computes = node.kind == Node::Kind::kComputes;
  if (!computes && node.kind != Node::Kind::kMemory) return 0;
  if (node.lasts != Duration() || node.is_of_cpu) return node.lasts.seconds();
  return gpu.seconds_of(computes ? static_cast<double>(node.operations) : 0,
                        static_cast<double>(node.tensor_bytes));
}

}  // namespace

fabric::Parsed<RankGraph> graph_of(const Trace& trace, const GPU& gpu) {
  const fabric::Parsed<Links> links = links_of(trace);
  if (!links) return tl::unexpected(links.error());
  const std::vector<u32> order = order_of(trace, *links);
  if (order.size() != trace.nodes.size())
    return wrong(trace, trace.nodes[waits_for_itself(*links, order)], "it waits for itself");
  std::vector<u32> number_of(order.size());
  RankGraph graph{.trace = &trace, .items = {}};
  double sum = 0;
  for (u32 number = 0; number < order.size(); ++number) {
    const Node& node = trace.nodes[order[number]];
    number_of[order[number]] = number;
    const double seconds = seconds_of(node, gpu);
    if ((sum += seconds) > kMostSeconds)
      return wrong(trace, node, "until then the rank computes for more than eleven days");
    Item& item = graph.items.emplace_back();
    item.node = &node;
    item.lasts = ps(static_cast<i64>(seconds * 1e12));
    for (const u32 before : links->before[order[number]]) item.after.push_back(number_of[before]);
  }
  return graph;
}

}  // namespace verbena::jobs::chakra
