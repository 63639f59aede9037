#include "fabric/topologies/imported.h"

#include <map>

#include <fmt/format.h>

#include "fabric/hpcc_ns3/scenario.h"
#include "fabric/scenario/units.h"

namespace verbena::fabric {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  for (std::size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// A list of links, read line by line.
class List {
 public:
  explicit List(const LinkConfig& defaults) : defaults_(defaults) {}

  // Returns the error in the line; "" if there is none.
  std::string take(const std::vector<std::string_view>& words) {
    if (words.empty()) return {};
    if (words.size() == 2 && (words[0] == "host" || words[0] == "switch")) {
      declared_[node(words[1])] = words[0] == "switch";
      return {};
    }
    if (words.size() < 2 || words.size() > 5)
      return "expected a link, `a b [rate [delay [error_rate]]]`, or `switch NAME`";
    LinkConfig link = defaults_;
    if (words.size() > 2) {
      const std::optional<Rate> rate = rate_of(words[2]);
      if (!rate || rate->bps() == 0)
        return fmt::format("'{}' is no rate; write it as 100Gbps", words[2]);
      link.rate = *rate;
    }
    if (words.size() > 3) {
      const std::optional<Duration> delay = duration_of(words[3]);
      if (!delay) return fmt::format("'{}' is no time; write it as 1us", words[3]);
      link.delay = *delay;
    }
    if (words.size() > 4) {
      const std::optional<double> error_rate = number_of(words[4]);
      if (!error_rate || *error_rate > 1)
        return fmt::format("'{}' is no probability; write it as 0.001", words[4]);
      link.error_rate = *error_rate;
    }
    const NodeIndex a = node(words[0]);
    const NodeIndex b = node(words[1]);
    links_.push_back({a, b, link});
    return names_.size() > kMaxNodes ? fmt::format("more than {} nodes", kMaxNodes) : "";
  }

  Plan plan() const {
    std::vector<u32> links_of(names_.size());
    for (const TopologyLink& link : links_)
      for (const NodeIndex node : {link.a, link.b}) ++links_of[node];
    Plan plan;
    for (NodeIndex node = 0; node < names_.size(); ++node) {
      const auto declared = declared_.find(node);
      const bool is_switch = declared != declared_.end() ? declared->second : links_of[node] != 1;
      if (is_switch)
        plan.add_switch(names_[node]);
      else
        plan.add_host(names_[node]);
    }
    plan.topology.links = links_;
    return plan;
  }

 private:
  NodeIndex node(std::string_view name) {
    const auto [at, is_new] = nodes_.try_emplace(std::string(name), names_.size());
    if (is_new) names_.emplace_back(name);
    return at->second;
  }

  const LinkConfig defaults_;
  std::map<std::string, NodeIndex> nodes_;
  std::map<NodeIndex, bool> declared_;  // whether it is a switch
  std::vector<std::string> names_;
  std::vector<TopologyLink> links_;
};

Parsed<Plan> from_list(std::string_view name, std::string_view text, const LinkConfig& defaults) {
  List list(defaults);
  for (u32 line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (const std::string wrong = list.take(words_of(text.substr(0, end))); !wrong.empty())
      return tl::unexpected(InputError{fmt::format("{}:{}: {}", name, line, wrong)});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  Plan plan = list.plan();
  if (const std::string wrong = check(plan.topology); !wrong.empty())
    return tl::unexpected(InputError{fmt::format("{}: {}", name, wrong)});
  return plan;
}

// Named by their numbers.
Parsed<Plan> from_hpcc_ns3(std::string_view name, std::string_view text) {
  Parsed<Topology> topology = hpcc_ns3::parse_topology(name, text);
  if (!topology) return tl::unexpected(topology.error());
  Plan plan;
  plan.topology = *std::move(topology);
  for (NodeIndex node = 0; node < plan.topology.nodes; ++node) {
    plan.names.push_back(std::to_string(node));
    if (!plan.topology.is_switch[node]) plan.hosts.push_back(node);
  }
  return plan;
}

bool is_hpcc_ns3(std::string_view text) {
  Words words({}, text);
  for (int i = 0; i < 3; ++i)
    if (!words.next_number<u32>()) return false;
  const std::size_t end = text.find('\n');
  return words_of(text.substr(0, end)).size() == 3;
}

}  // namespace

Parsed<Plan> imported_plan(std::string_view name, std::string_view text,
                           const LinkConfig& defaults) {
  return is_hpcc_ns3(text) ? from_hpcc_ns3(name, text) : from_list(name, text, defaults);
}

}  // namespace verbena::fabric
