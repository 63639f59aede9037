#include "jobs/flow_level/flow_run.h"

#include <algorithm>
#include <numeric>

#include "jobs/flow_level/max_min.h"
#include "jobs/flow_level/ways.h"

namespace verbena::jobs {
namespace {

using collectives::Action;
using collectives::Pace;
using collectives::Pipeline;
using collectives::Schedule;
using collectives::Stage;
using collectives::Step;

struct Flows {
  Paths paths;
  std::vector<double> bytes;
  std::vector<double> latency;  // of a packet, where nothing else is
};

class FlowLevel {
 public:
  FlowLevel(const Schedule& schedule, const Communicator* groups, const Cluster& cluster,
            const fabric::Topology& topology, const FlowLevelConfig& config, const Stop& stop)
      : schedule_(schedule),
        groups_(groups),
        cluster_(cluster),
        topology_(topology),
        config_(config),
        stop_(stop),
        ways_(topology) {
    const double packet = config.packet_bytes;
    const double share = packet / (packet + config.header_bytes);
    for (const fabric::TopologyLink& link : topology.links)
      for (u32 direction = 0; direction < 2; ++direction)
        capacity_.push_back(share * static_cast<double>(link.config.rate.bps()) / 8);
    nvlink_ = static_cast<u32>(capacity_.size());
    capacity_.resize(capacity_.size() + 2 * u64{cluster.ranks()},
                     static_cast<double>(cluster.nvlink.rate.bps()) / 8);
  }

  FlowLevelResult run();

 private:
  void add_stage(const Stage& stage, std::size_t lanes, double times, Flows& flows);
  void add_flows(u32 from, u32 to, u32 lane, double bytes, Flows& flows);  // of all groups
  void add_flow(u32 from, u32 to, u32 lane, double bytes, Flows& flows);
  double latency_of(const std::vector<u32>& way) const;
  struct Round {
    double together = 0;  // all channels, without latency
    double lockstep = 0;  // all channels, with what latency they do not hide from each other
    double alone = 0;     // one channel, with it
  };
  Round round(const Stage& stage);

  const Schedule& schedule_;
  const Communicator* const groups_;  // nullptr if one group has all ranks
  const Cluster& cluster_;
  const fabric::Topology& topology_;
  const FlowLevelConfig config_;
  const Stop& stop_;
  Ways ways_;
  std::vector<double> capacity_;  // bytes per second: of link directions, then NVLink out and in
  u32 nvlink_ = 0;                // the first of these
  std::vector<u32> way_;
  std::string mistake_;
};

double FlowLevel::latency_of(const std::vector<u32>& way) const {
  double seconds = 0;
  const double bytes = config_.packet_bytes + config_.header_bytes;
  for (std::size_t i = 0; i < way.size(); ++i) {
    const fabric::LinkConfig& link = topology_.links[way[i] / 2].config;
    seconds += link.delay.seconds();
    if (i == 0) continue;
    seconds += config_.switch_latency.seconds();
    if (!config_.cuts_through) seconds += bytes * 8 / static_cast<double>(link.rate.bps());
  }
  return seconds;
}

void FlowLevel::add_flow(u32 from, u32 to, u32 lane, double bytes, Flows& flows) {
  flows.paths.begin_flow();
  flows.bytes.push_back(bytes);
  if (cluster_.share_a_node(from, to)) {
    flows.paths.add(nvlink_ + 2 * from);
    flows.paths.add(nvlink_ + 2 * to + 1);
    flows.latency.push_back(cluster_.nvlink.latency.seconds());
    return;
  }
  way_.clear();
  const u64 name = (u64{from} << 32 | to) * 64 + lane + (config_.seed << 20);
  if (!ways_.find(cluster_.nics[from], cluster_.nics[to], name, way_)) {
    flows.latency.push_back(0);
    mistake_ = "there is no way from the NIC of rank " + std::to_string(from) +
               " to that of rank " + std::to_string(to);
    return;
  }
  for (const u32 direction : way_) flows.paths.add(direction);
  flows.latency.push_back(latency_of(way_));
}

void FlowLevel::add_flows(u32 from, u32 to, u32 lane, double bytes, Flows& flows) {
  if (groups_ == nullptr) return add_flow(from, to, lane, bytes, flows);
  for (u32 group = 0; group < groups_->groups() && mistake_.empty(); ++group)
    add_flow(groups_->member(group, from), groups_->member(group, to), lane, bytes, flows);
}

// Adds the messages that all ranks send in one round, `times` over, on the first `lanes` lanes of
// the stage.
void FlowLevel::add_stage(const Stage& stage, std::size_t lanes, double times, Flows& flows) {
  for (std::size_t i = 0; i < lanes; ++i)
    for (u32 rank = 0; rank < schedule_.ranks() && mistake_.empty(); ++rank) {
      const u32 lane = stage.lanes[i];
      const collectives::StepWindow window = stage.window(rank, lane);
      for (u64 index = window.first; index < window.first + window.count; ++index) {
        const Step step = schedule_.step(rank, lane, index);
        if (step.action == Action::kSend)
          add_flows(rank, step.peer, lane, times * static_cast<double>(step.range.length), flows);
      }
    }
}

FlowLevel::Round FlowLevel::round(const Stage& stage) {
  Flows all, one;
  add_stage(stage, stage.lanes.size(), 1, all);
  add_stage(stage, 1, 1, one);
  const double together = busiest_time(all.paths, capacity_, all.bytes);
  if (one.bytes.empty()) return {.together = together, .lockstep = together};
  // Two channels of one NIC share it packet by packet: their messages of a round begin and end at
  // the same time, and neither hides the other's latency. More of them drift apart, and so do those
  // of nodes with several GPUs, whose messages queue at NVLink's ports: there the latency is
  // hidden.
  const bool is_in_step = schedule_.shape().ranks_per_node == 1 && stage.lanes.size() == 2;
  const double longest = *std::ranges::max_element(one.latency);
  if (stage.pace == Pace::kSlowest)
    return {.together = together,
            .lockstep = together + (is_in_step ? longest : 0),
            .alone = busiest_time(one.paths, capacity_, one.bytes) + longest};
  std::vector<double> ends = end_times(one.paths, capacity_, one.bytes);
  for (std::size_t i = 0; i < ends.size(); ++i) ends[i] += one.latency[i];
  return {
      .together = together,
      .lockstep = together + (is_in_step ? longest : 0),
      .alone = std::accumulate(ends.begin(), ends.end(), 0.0) / static_cast<double>(ends.size())};
}

// The first piece goes through all stages; each of the others ends as much later as the busiest
// stage is busy with it, or the links are that all stages share.
FlowLevelResult FlowLevel::run() {
  const Pipeline pipeline = schedule_.pipeline();
  FlowLevelResult result;
  double busiest = 0;
  Flows together;
  for (const Stage& stage : pipeline.stages) {
    if (stage.rounds == 0 || stage.levels == 0) continue;
    if (stop_(Progress())) return {.mistake = kInterrupted};
    const Round one = round(stage);
    const double rounds = static_cast<double>(stage.rounds);
    const double piece = rounds * std::max(one.lockstep, one.alone);
    if (stage.levels == 1) {
      result.seconds += piece;
      busiest = std::max(busiest, piece);
    } else {
      result.seconds += one.together + static_cast<double>(stage.levels - 1) * one.alone;
    }
    if (pipeline.pieces > 1) add_stage(stage, stage.lanes.size(), rounds, together);
  }
  if (pipeline.pieces > 1) {
    busiest = std::max(busiest, busiest_time(together.paths, capacity_, together.bytes));
    result.seconds += static_cast<double>(pipeline.pieces - 1) * busiest;
  }
  result.mistake = mistake_;
  return result;
}

}  // namespace

FlowLevelResult run_flow_level(const Schedule& schedule, const Cluster& cluster,
                               const fabric::Topology& topology, const FlowLevelConfig& config,
                               const Stop& stop) {
  return FlowLevel(schedule, nullptr, cluster, topology, config, stop).run();
}

FlowLevelResult run_flow_level(const Schedule& schedule, const Communicator& groups,
                               const Cluster& cluster, const fabric::Topology& topology,
                               const FlowLevelConfig& config, const Stop& stop) {
  return FlowLevel(schedule, &groups, cluster, topology, config, stop).run();
}

}  // namespace verbena::jobs
