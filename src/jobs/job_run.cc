#include "jobs/job_run.h"

#include "collectives/make_schedule.h"
#include "jobs/flow_level/flow_run.h"

namespace verbena::jobs {
namespace {

constexpr Duration kStretch = us(100);
// Nothing moves for so long: packets were lost again and again, or wait for each other.
constexpr Duration kPatience = sec(5);

}  // namespace

std::string run_packets(const Job& job, const collectives::Script& script, StepObserver* observer,
                        const Stop& stop, std::optional<PacketResult>& result) {
  fabric::Network network(job.plan.topology, network_for(job.cluster, job.network));
  CollectiveRun run(script, job.cluster, job.run, network);
  if (!run.mistake().empty()) return run.mistake();
  run.set_observer(observer);
  run.start();
  Time moved;
  u64 messages = 0;
  for (Time end = Time() + kStretch; network.run(end) && !run.finished(); end = end + kStretch) {
    if (stop({end - Time(), network.counters().events, [&] { return run.part_done(); }}))
      return kInterrupted;
    if (run.messages() != messages) moved = end;
    messages = run.messages();
    if (end - moved > kPatience) return "nothing moves any more: a deadlock of pauses, or no way";
  }
  if (!run.finished()) return "messages wait for others that never come";
  result = PacketResult{.time = run.time(),
                        .spent = run.spent(),
                        .messages = run.messages(),
                        .network_octets = run.network_octets(),
                        .nvlink_octets = run.nvlink_octets(),
                        .cpu_time = run.cpu_time(),
                        .repairs = network.repairs(),
                        .counters = network.counters()};
  return "";
}

namespace {

FlowLevelConfig flow_level_config(const Job& job) {
  const MTU mtu = job.network.host({}).device.active_mtu;
  return {.packet_octets = static_cast<u32>(bytes(mtu)), .seed = job.network.seed};
}

}  // namespace

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
  return result;
}

}  // namespace verbena::jobs
