#include "jobs/job_run.h"

#include <algorithm>
#include <memory>

#include "collectives/make_schedule.h"
#include "fabric/results/alone_time.h"
#include "jobs/flow_level/flow_run.h"
#include "jobs/flow_level/twin.h"
#include "jobs/storage/side_by_side.h"

namespace verbena::jobs {
namespace {

constexpr Duration kStretch = us(100);
// Nothing moves for so long: packets were lost again and again, or wait for each other.
constexpr Duration kPatience = sec(5);

// Reads of training data beside the run, if the job has them.
class Background {
 public:
  Background(const Job& job, CollectiveRun& run, fabric::Network& network) : job_(job) {
    if (!job.storage) return;
    constexpr u32 kMark = CollectiveRun::kForeignWord;
    reads_ = std::make_unique<StorageReads>(*job.storage, job.cluster, network, run.connections(),
                                            kMark, job.network.seed);
    both_ = std::make_unique<SideBySide>(run, *reads_, run.connections(), kMark);
    network.set_application(both_.get());
  }

  [[nodiscard]] std::string mistake() const { return reads_ ? reads_->mistake() : ""; }
  void start() {
    if (reads_) reads_->start();
  }
  [[nodiscard]] std::optional<StorageResult> result(Duration time) const {
    if (!reads_) return std::nullopt;
    return storage_result(reads_->reads_until(Time() + time), *job_.storage, job_.cluster.ranks(),
                          time);
  }

 private:
  const Job& job_;
  std::unique_ptr<StorageReads> reads_;
  std::unique_ptr<SideBySide> both_;
};

// Runs the network until `end`, and takes samples for the record. Returns false if no events are
// left.
bool run_stretch(fabric::Network& network, Time end, RunRecord* record) {
  if (record == nullptr) return network.run(end);
  bool more = true;
  while (more && record->network().next_sample() <= end) {
    more = network.run(record->network().next_sample());
    record->network().sample(network, record->network().next_sample());
  }
  return more && network.run(end);
}

std::size_t points_of_run(const Job& job) {
  return fabric::NetworkRecord::kMostPoints / std::max<std::size_t>(1, job.shapes.size());
}

PacketResult result_of(const CollectiveRun& run, const fabric::Network& network) {
  PacketResult result{.time = network.now() - Time(),
                      .messages = run.messages(),
                      .network_bytes = run.network_bytes(),
                      .nvlink_bytes = run.nvlink_bytes(),
                      .cpu_time = run.cpu_time(),
                      .latencies = run.latencies(),
                      .repairs = network.repairs(),
                      .counters = network.counters()};
  if (!run.finished()) return result;
  result.time = run.time();
  result.spent = run.spent();
  return result;
}

// Returns "" if the run is finished, else the error.
std::string run_to_end(CollectiveRun& run, fabric::Network& network, RunRecord* record,
                       const Stop& stop) {
  Time moved;
  u64 messages = 0;
  for (Time end = Time() + kStretch; run_stretch(network, end, record) && !run.finished();
       end = end + kStretch) {
    if (stop({end - Time(), network.counters().events, [&] { return run.part_done(); }}))
      return kInterrupted;
    if (run.messages() != messages) moved = end;
    messages = run.messages();
    if (end - moved > kPatience) return "nothing moves any more: a deadlock of pauses, or no way";
  }
  return run.finished() ? "" : "messages wait for others that never come";
}

}  // namespace

std::string run_packets(const Job& job, const collectives::Script& script, StepObserver* observer,
                        const Stop& stop, std::optional<PacketResult>& result) {
  fabric::Network network(job.plan.topology, network_for(job.cluster, job.network));
  if (job.keep == Keep::kAll) network.log_paths();
  CollectiveRun run(script, job.cluster, job.run, network);
  if (!run.mistake().empty()) return run.mistake();
  Background background(job, run, network);
  if (!background.mistake().empty()) return background.mistake();
  std::shared_ptr<RunRecord> record;
  if (job.keep == Keep::kAll)
    record = std::make_shared<RunRecord>(script, job.plan.topology, points_of_run(job), observer);
  run.set_observer(record ? record.get() : observer);
  if (record) network.set_trace(&record->network());
  run.start();
  background.start();
  const std::string mistake = run_to_end(run, network, record.get(), stop);
  if (!mistake.empty() && mistake != kInterrupted) return mistake;
  result = result_of(run, network);
  result->storage = background.result(result->time);
  if (record) record->finish(network, Time() + result->time, run.paths());
  result->record = std::move(record);
  return mistake;
}

FlowLevelConfig flow_level_config(const Job& job) {
  const fabric::PacketSizes sizes = fabric::packet_sizes(job.network, job.network.host({}));
  const fabric::NetworkConfig& network = job.network;
  const bool is_infiniband = network.technology == fabric::Technology::kInfiniBand;
  const fabric::ForwardingConfig& forwarding = network.switches.forwarding;
  const bool cuts_through = forwarding.mode == fabric::ForwardingConfig::Mode::kCutThrough;
  return {.packet_bytes = sizes.payload,
          .header_bytes = sizes.header,
          .switch_latency = is_infiniband ? network.infiniband.latency : forwarding.latency,
          .cuts_through = is_infiniband ? network.infiniband.cuts_through : cuts_through,
          .seed = network.seed};
}

namespace {

std::optional<FlowError> error_of_twin(const Job& job, const collectives::Shape& shape,
                                       const Stop& stop) {
  const std::optional<Job> twin = twin_of(job, shape);
  if (!twin) return std::nullopt;
  const CollectiveResult both = run_collective(*twin, twin->shapes.front(), until_twin_ends(stop));
  if (!both.mistake.empty()) return std::nullopt;
  return FlowError{.gpus = both.shape.ranks,
                   .bytes = both.shape.bytes,
                   .error = *both.flow_seconds / both.by_packets->time.seconds() - 1};
}

}  // namespace

Stop until_twin_ends(const Stop& stop) {
  return [&stop](const Progress& progress) {
    return progress.events > kMostTwinEvents || stop(progress);
  };
}

CollectiveResult run_collective(const Job& job, const collectives::Shape& shape, const Stop& stop) {
  const auto schedule = collectives::make_schedule(shape);
  CollectiveResult result{
      .shape = schedule->shape(), .mistake = {}, .by_packets = {}, .flow_seconds = {}};
  if (job.method != Method::kFlows)
    result.mistake = run_packets(job, *schedule, nullptr, stop, result.by_packets);
  if (job.method == Method::kPackets || !result.mistake.empty()) return result;
  const FlowLevelResult flows =
      run_flow_level(*schedule, job.cluster, job.plan.topology, flow_level_config(job), stop);
  result.mistake = flows.mistake;
  result.flow_seconds = flows.seconds;
  if (job.method == Method::kFlows && result.mistake.empty())
    result.flow_error = error_of_twin(job, result.shape, stop);
  return result;
}

}  // namespace verbena::jobs
