#include "jobs/flow_level/max_min.h"

#include <algorithm>
#include <limits>
#include <queue>

namespace verbena::jobs {
namespace {

constexpr double kSame = 1 + 1e-9;     // shares that differ by less are equal
constexpr double kSameEnd = 1 + 1e-3;  // ranges of an array that is not divided evenly end together

struct Users {  // of each resource: flows
  std::vector<u32> begin, flows;
};

Users users_of(const Paths& paths, std::size_t resources, const std::vector<bool>& active) {
  Users users{std::vector<u32>(resources + 1), {}};
  for (u32 flow = 0; flow < paths.flows(); ++flow)
    if (active[flow])
      for (const u32 resource : paths.of(flow)) ++users.begin[resource + 1];
  for (std::size_t i = 0; i < resources; ++i) users.begin[i + 1] += users.begin[i];
  users.flows.resize(users.begin.back());
  std::vector<u32> at(users.begin.begin(), users.begin.end() - 1);
  for (u32 flow = 0; flow < paths.flows(); ++flow)
    if (active[flow])
      for (const u32 resource : paths.of(flow)) users.flows[at[resource]++] = flow;
  return users;
}

}  // namespace

std::vector<double> max_min_rates(const Paths& paths, const std::vector<double>& capacity,
                                  const std::vector<bool>& active) {
  const Users users = users_of(paths, capacity.size(), active);
  std::vector<double> left = capacity, rates(paths.flows());
  std::vector<u32> rising(capacity.size());
  std::vector<bool> stays(paths.flows());
  using Full = std::pair<double, u32>;  // the share at which a resource is full
  std::priority_queue<Full, std::vector<Full>, std::greater<>> next;
  for (u32 resource = 0; resource < capacity.size(); ++resource) {
    rising[resource] = users.begin[resource + 1] - users.begin[resource];
    if (rising[resource] != 0) next.emplace(left[resource] / rising[resource], resource);
  }
  while (!next.empty()) {
    const auto [share, resource] = next.top();
    next.pop();
    if (rising[resource] == 0) continue;
    const double now = left[resource] / rising[resource];
    if (now > share * kSame) {  // others have stayed meanwhile
      next.emplace(now, resource);
      continue;
    }
    for (u32 i = users.begin[resource]; i != users.begin[resource + 1]; ++i) {
      const u32 flow = users.flows[i];
      if (stays[flow]) continue;
      stays[flow] = true;
      rates[flow] = now;
      for (const u32 other : paths.of(flow)) {
        left[other] = std::max(0.0, left[other] - now);
        --rising[other];
      }
    }
  }
  return rates;
}

std::vector<double> end_times(const Paths& paths, const std::vector<double>& capacity,
                              std::vector<double> units) {
  double time = 0;
  std::vector<double> ends(units.size());
  std::vector<bool> active(units.size());
  while (true) {
    bool any = false;
    for (u32 flow = 0; flow < units.size(); ++flow) {
      active[flow] = units[flow] > 0 && !paths.of(flow).empty();
      any |= active[flow];
    }
    if (!any) return ends;
    const std::vector<double> rates = max_min_rates(paths, capacity, active);
    double first = std::numeric_limits<double>::infinity();
    for (u32 flow = 0; flow < units.size(); ++flow)
      if (active[flow]) first = std::min(first, units[flow] / rates[flow]);
    time += first;
    for (u32 flow = 0; flow < units.size(); ++flow) {
      if (!active[flow]) continue;
      const bool ended = units[flow] / rates[flow] <= first * kSameEnd;
      units[flow] = ended ? 0 : units[flow] - rates[flow] * first;
      if (ended) ends[flow] = time;
    }
  }
}

double busiest_time(const Paths& paths, const std::vector<double>& capacity,
                    const std::vector<double>& units) {
  std::vector<double> carried(capacity.size());
  for (u32 flow = 0; flow < paths.flows(); ++flow)
    for (const u32 resource : paths.of(flow)) carried[resource] += units[flow];
  double longest = 0;
  for (std::size_t i = 0; i < capacity.size(); ++i)
    longest = std::max(longest, carried[i] / capacity[i]);
  return longest;
}

}  // namespace verbena::jobs
