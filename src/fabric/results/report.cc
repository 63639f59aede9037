#include "fabric/results/report.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

#include "fabric/results/report_assets.h"
#include "fabric/results/report_page.h"

namespace verbena::fabric {
namespace {

using JSON = nlohmann::ordered_json;

constexpr std::size_t kShownSeries = 8, kShownFlows = 3000, kShownPoints = 500, kShownPaused = 10;
constexpr std::size_t kDrawnHosts = 64, kDrawnLinks = 3000;

double us_of(Duration duration) { return static_cast<double>(duration.ps()) * 1e-6; }

// The places of the largest values, largest first.
template <typename Value>
std::vector<u32> largest(const std::vector<Value>& values, std::size_t count) {
  std::vector<u32> places;
  for (u32 i = 0; i < values.size(); ++i)
    if (values[i] > Value{}) places.push_back(i);
  std::ranges::stable_sort(places, [&](u32 a, u32 b) { return values[a] > values[b]; });
  if (places.size() > count) places.resize(count);
  return places;
}

class Report {
 public:
  Report(const Simulation& simulation, const Summary& summary)
      : simulation_(simulation),
        summary_(summary),
        held_(simulation.held_times()),
        totals_(simulation.totals()) {
    const std::size_t samples = simulation.record().samples().times().size();
    step_ = std::max<std::size_t>(1, (samples + kShownPoints - 1) / kShownPoints);
  }

  JSON data() const {
    JSON data;
    data["outcome"] = name_of(summary_.outcome);
    data["complete"] =
        summary_.outcome == Outcome::kComplete || summary_.outcome == Outcome::kTimeIsUp;
    data["held"] = summary_.has_credits ? "without credits" : "paused";
    const std::string& name = simulation_.scenario().name;
    data["name"] = name.substr(name.rfind('/') + 1);
    data["seed"] = simulation_.scenario().network.seed;
    data["scenario"] = simulation_.scenario().text;
    data["end_us"] = us_of(summary_.simulated);
    for (const SummaryLine& line : lines_of(summary_))
      if (line.name != "outcome") data["summary"].push_back({line.name, line.value});
    add_deadlock(data);
    add_topology(data);
    add_faults(data);
    add_flows(data);
    add_times(data);
    add_queues(data);
    add_rates(data);
    add_loads(data);
    return data;
  }

 private:
  void add_deadlock(JSON& data) const {
    const auto text = [](const std::optional<std::string>& value) {
      return value ? JSON(*value) : JSON(nullptr);
    };
    data["deadlock"] = text(deadlock_text(simulation_));
    data["watchdog"] = text(watchdog_text(simulation_));
    data["circle"] = JSON::array();  // links
    if (const std::optional<Deadlock>& deadlock = simulation_.network().deadlock())
      for (const WaitingQueue& queue : deadlock->cycle)
        data["circle"].push_back(
            simulation_.ports().ends()[simulation_.ports().end_of(queue.node, queue.port)].link);
  }

  void add_topology(JSON& data) const {
    const Plan& plan = simulation_.scenario().plan;
    const Topology& topology = plan.topology;
    const std::vector<u32> tier = tiers(topology);
    data["nodes"] = JSON::array();
    data["links"] = JSON::array();
    data["paused"] = JSON::array();
    data["shows_hosts"] = plan.hosts.size() <= kDrawnHosts;
    for (NodeIndex node = 0; node < topology.nodes; ++node)
      data["nodes"].push_back({{"name", plan.names[node]},
                               {"is_switch", bool{topology.is_switch[node]}},
                               {"tier", tier[node]}});
    for (u32 i = 0; i < topology.links.size() && i < kDrawnLinks; ++i)
      data["links"].push_back({{"name", plan.link_name(i)},
                               {"a", topology.links[i].a},
                               {"b", topology.links[i].b},
                               {"paused", {paused_part(2 * i), paused_part(2 * i + 1)}},
                               {"utilization", {utilization_of(2 * i), utilization_of(2 * i + 1)}},
                               {"queue", {queue_of(2 * i), queue_of(2 * i + 1)}}});
    for (const u32 end : largest(held_, kShownPaused))
      data["paused"].push_back({{"name", end_name(simulation_, end)},
                                {"us", us_of(held_[end])},
                                {"part", paused_part(end)}});
  }
  double utilization_of(u32 end) const { return totals_[end].utilization; }
  u32 queue_of(u32 end) const { return totals_[end].longest_queue_octets; }

  // Links that go down, with their times; those that only lose frames have none.
  void add_faults(JSON& data) const {
    data["faults"] = JSON::array();
    const NetworkFaults& faults = simulation_.scenario().network.faults;
    const auto until = [](Time time) {
      return time == Time::never() ? JSON(nullptr) : JSON(us_of(time - Time()));
    };
    for (const LinkOutage& outage : faults.outages)
      data["faults"].push_back({{"link", outage.link},
                                {"what", "down"},
                                {"at_us", us_of(outage.down - Time())},
                                {"until_us", until(outage.up)}});
    for (const LinkRules& rules : faults.rules)
      data["faults"].push_back(
          {{"link", rules.link}, {"what", "rules"}, {"at_us", nullptr}, {"until_us", nullptr}});
    const std::vector<LinkEnd>& ends = simulation_.ports().ends();
    for (const StuckPause& pause : faults.stuck_pauses)
      data["faults"].push_back(
          {{"link", ends[simulation_.ports().end_of(pause.node, pause.port)].link},
           {"what", "stuck pause"},
           {"at_us", us_of(pause.from - Time())},
           {"until_us", until(pause.until)}});
  }

  double paused_part(u32 end) const {
    const Duration all = summary_.simulated;
    if (all <= Duration()) return 0;
    return std::min(1.0, held_[end].seconds() / all.seconds());
  }

  void add_flows(JSON& data) const {
    data["flows"] = JSON::array();
    data["buckets"] = JSON::array();
    const std::size_t every = summary_.finished / kShownFlows + 1;
    for (std::size_t i = 0, ended = 0; i < simulation_.flows().size(); ++i) {
      const Simulation::FlowResult& result = simulation_.flows()[i];
      if (result.finished == Time::never() || ended++ % every != 0) continue;
      const Flow& flow = simulation_.scenario().flows[i];
      const double slowdown = (result.finished - flow.start).seconds() / result.alone.seconds();
      data["flows"].push_back({std::max<u64>(1, flow.octets), slowdown});
    }
    for (const SlowdownBucket& bucket : summary_.by_size) {
      const double most = static_cast<double>(bucket.most_octets);
      data["buckets"].push_back({{"most", most},
                                 {"middle", std::min(most, 1e9) / std::sqrt(10)},
                                 {"flows", bucket.flows},
                                 {"p50", bucket.p50},
                                 {"p95", bucket.p95},
                                 {"p99", bucket.p99}});
    }
  }

  void add_times(JSON& data) const {
    data["times_us"] = JSON::array();
    const std::vector<Time>& times = simulation_.record().samples().times();
    for (std::size_t i = 0; i < times.size(); i += step_)
      data["times_us"].push_back(us_of(times[i] - Time()));
  }

  // The greatest value of each `step_` samples.
  std::vector<u64> thinned(const std::vector<u64>& values) const {
    std::vector<u64> kept;
    for (std::size_t i = 0; i < values.size(); i += step_)
      kept.push_back(*std::max_element(
          values.begin() + static_cast<std::ptrdiff_t>(i),
          values.begin() + static_cast<std::ptrdiff_t>(std::min(i + step_, values.size()))));
    return kept;
  }
  std::vector<u64> filled(const SeriesSet& set, u32 thing) const {
    return set.filled(thing, simulation_.record().samples().times().size());
  }

  void add_queues(JSON& data) const {
    data["queues"] = JSON::array();
    std::vector<u64> longest(simulation_.record().queues().size());
    for (u32 i = 0; i < longest.size(); ++i)
      for (const SeriesSet::Point& point : simulation_.record().queues().of(i))
        longest[i] = std::max(longest[i], point.value);
    for (const u32 end : largest(longest, kShownSeries))
      data["queues"].push_back({{"name", end_name(simulation_, end)},
                                {"values", thinned(filled(simulation_.record().queues(), end))}});
  }

  void add_rates(JSON& data) const {
    data["rates"] = JSON::array();
    const Plan& plan = simulation_.scenario().plan;
    std::vector<u64> octets(simulation_.record().rates().size());
    for (u32 i = 0; i < octets.size(); ++i)
      if (!simulation_.record().rates().of(i).empty())
        octets[i] = simulation_.scenario().flows[i].octets;
    for (const u32 i : largest(octets, kShownSeries)) {
      const Flow& flow = simulation_.scenario().flows[i];
      data["rates"].push_back(
          {{"name", plan.names[flow.source] + " to " + plan.names[flow.destination]},
           {"values", thinned(filled(simulation_.record().rates(), i))}});
    }
  }

  void add_loads(JSON& data) const {
    data["loads"] = JSON::array();
    std::vector<u64> sent;
    std::array<u64, 10> histogram{};
    for (const PortTotal& total : simulation_.totals()) {
      sent.push_back(total.sent_octets);
      ++histogram[std::min<std::size_t>(9, static_cast<std::size_t>(total.utilization * 10))];
    }
    data["utilization"] = histogram;
    for (const u32 end : largest(sent, kShownSeries / 2))
      data["loads"].push_back({{"name", end_name(simulation_, end)}, {"values", loads_of(end)}});
  }
  std::vector<u64> loads_of(u32 end) const {
    const std::vector<u64> sent = filled(simulation_.record().sent(), end);
    const std::vector<Time>& times = simulation_.record().samples().times();
    std::vector<u64> loads;
    for (std::size_t i = 0; i < sent.size(); i += step_) {
      const std::size_t next = std::min(i + step_, sent.size() - 1);
      const Duration time = times[next] - times[i];
      loads.push_back(
          time > Duration()
              ? static_cast<u64>(static_cast<double>(sent[next] - sent[i]) * 8 / time.seconds())
              : 0);
    }
    return loads;
  }

  const Simulation& simulation_;
  const Summary& summary_;
  const std::vector<Duration> held_;     // by link end
  const std::vector<PortTotal> totals_;  // likewise
  std::size_t step_ = 1;
};

}  // namespace

std::string report_html(const Simulation& simulation, const Summary& summary) {
  return report_page(kReportPage, kReportCode, Report(simulation, summary).data());
}

}  // namespace verbena::fabric
