#include "fabric/results/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include <nlohmann/json.hpp>

#include "fabric/results/fault_list.h"
#include "fabric/results/record_use.h"
#include "fabric/results/report_page.h"

namespace verbena::fabric {
namespace {

using JSON = nlohmann::ordered_json;

constexpr std::size_t kShownSeries = 8, kShownFlows = 3000, kShownPoints = 500, kShownPaused = 10;
constexpr std::size_t kShownTransfers = 3000;

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
    data["format"] = kReportFormat;
    data["kind"] = "scenario";
    data["outcome"] = name_of(summary_.outcome);
    data["complete"] =
        summary_.outcome == Outcome::kComplete || summary_.outcome == Outcome::kTimeIsUp;
    data["held"] = summary_.has_credits ? "without credits" : "paused";
    const std::string& name = simulation_.scenario().name;
    data["name"] = name.substr(name.rfind('/') + 1);
    data["seed"] = simulation_.scenario().network.seed;
    data["scenario"] = simulation_.scenario().text;
    for (const SummaryLine& line : lines_of(summary_))
      if (line.name != "outcome") data["summary"].push_back({line.name, line.value});
    add_deadlock(data);
    add_topology(data);
    add_faults(data);
    JSON& run = data["runs"]["network"];
    run["end_us"] = us_of(summary_.simulated);
    add_flows(run);
    add_times(run);
    add_queues(run);
    add_rates(run);
    add_loads(run);
    add_paused(run);
    add_totals(run);
    run["use"] = use_of_links(simulation_.record(), simulation_.scenario().plan.topology,
                              simulation_.measured_until())
                     .data();
    add_transfers(run);
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
    const std::vector<u32> tier = tiers(plan.topology);
    std::vector<u32> is_switch;
    for (const bool is : plan.topology.is_switch) is_switch.push_back(is ? 1 : 0);
    data["nodes"] = {{"name", plan.names}, {"tier", tier}, {"is_switch", is_switch}};
    std::vector<u64> a, b, bps;
    for (const TopologyLink& link : plan.topology.links) {
      a.push_back(link.a);
      b.push_back(link.b);
      bps.push_back(link.config.rate.bps());
    }
    data["links"] = {{"a", a}, {"b", b}, {"bps", bps}};
  }

  void add_paused(JSON& run) const {
    run["paused"] = JSON::array();
    for (const u32 end : largest(held_, kShownPaused))
      run["paused"].push_back({{"name", end_name(simulation_, end)},
                               {"us", us_of(held_[end])},
                               {"part", paused_part(end)}});
  }

  // Adds the totals of each direction, for the whole time. Parts are thousandths.
  void add_totals(JSON& run) const {
    std::vector<u64> load, queue, marks, paused;
    for (u32 end = 0; end < totals_.size(); ++end) {
      load.push_back(static_cast<u64>(std::lround(totals_[end].utilization * 1000)));
      queue.push_back(totals_[end].longest_queue_bytes);
      marks.push_back(totals_[end].marks);
      paused.push_back(static_cast<u64>(std::lround(paused_part(end) * 1000)));
    }
    run["totals"] = {{"load", load}, {"queue", queue}, {"marks", marks}, {"paused", paused}};
  }

  // Returns how much longer a flow took than alone; flows that have not ended are first.
  [[nodiscard]] Duration lost_time(u32 flow) const {
    const Simulation::FlowResult& result = simulation_.flows()[flow];
    const Duration took = result.finished - simulation_.scenario().flows[flow].start;
    return result.finished == Time::never() ? sec(1'000'000) : took - result.alone;
  }

  // The flows that lost most time, with the ways that they took.
  void add_transfers(JSON& run) const {
    std::vector<u32> order(simulation_.flows().size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, std::greater{}, [this](u32 flow) { return lost_time(flow); });
    JSON& transfers = run["transfers"];
    transfers = {{"all", order.size()}, {"rows", JSON::array()}, {"paths", JSON::array()}};
    if (order.size() > kShownTransfers) order.resize(kShownTransfers);
    std::map<std::vector<u32>, std::size_t> paths;
    for (const u32 number : order) {
      const Flow& flow = simulation_.scenario().flows[number];
      const Simulation::FlowResult& result = simulation_.flows()[number];
      const bool has_ended = result.finished != Time::never();
      transfers["rows"].push_back(
          {flow.source, flow.destination, flow.bytes, us_of(flow.start - Time()),
           has_ended ? JSON(us_of(result.finished - Time())) : JSON(nullptr), us_of(result.alone),
           place_of(path_of(number), paths)});
    }
    std::vector<const std::vector<u32>*> in_order(paths.size());
    for (const auto& [path, place] : paths) in_order[place] = &path;
    for (const std::vector<u32>* const path : in_order) transfers["paths"].push_back(*path);
  }
  static std::size_t place_of(std::vector<u32> path,
                              std::map<std::vector<u32>, std::size_t>& paths) {
    return paths.try_emplace(std::move(path), paths.size()).first->second;
  }
  std::vector<u32> path_of(u32 flow) const {
    std::vector<u32> path;
    for (const PathHop& hop : simulation_.network().path_of_flow(flow))
      path.push_back(simulation_.ports().end_of(hop.node, hop.port));
    return path;
  }

  void add_faults(JSON& data) const {
    data["faults"] = JSON::array();
    const auto us_or_null = [](const std::optional<Time>& time) {
      return time ? JSON(us_of(*time - Time())) : JSON(nullptr);
    };
    for (const ListedFault& fault :
         listed(simulation_.scenario().network.faults, simulation_.ports()))
      data["faults"].push_back({{"link", fault.link},
                                {"what", fault.what},
                                {"at_us", us_or_null(fault.from)},
                                {"until_us", us_or_null(fault.until)}});
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
      data["flows"].push_back({std::max<u64>(1, flow.bytes), slowdown});
    }
    for (const SlowdownBucket& bucket : summary_.by_size) {
      const double most = static_cast<double>(bucket.most_bytes);
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
    std::vector<u64> bytes(simulation_.record().rates().size());
    for (u32 i = 0; i < bytes.size(); ++i)
      if (!simulation_.record().rates().of(i).empty())
        bytes[i] = simulation_.scenario().flows[i].bytes;
    for (const u32 i : largest(bytes, kShownSeries)) {
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
      sent.push_back(total.sent_bytes);
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
  return report_page(Report(simulation, summary).data());
}

}  // namespace verbena::fabric
