#include "fabric/hpcc_ns3/results.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace verbena::fabric::hpcc_ns3 {
namespace {

constexpr u64 kHeaderBytes = 48;

double per_second(u64 count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

}  // namespace

Duration standalone_time(const Flow& flow, const Config& config, const Path& path) {
  const u64 packets = (flow.bytes + config.packet_payload - 1) / config.packet_payload;
  const u64 bytes = flow.bytes + packets * kHeaderBytes;
  return ns(static_cast<i64>(path.round_trip_ns() + bytes * kNanosecondBits / path.slowest_bps));
}

void Results::on_pause_received(NodeIndex node, u32 port, u32, u32 quanta, Time now) {
  fmt::format_to(std::back_inserter(pfc_), "{} {} {} {} {}\n", now.ns(), node,
                 scenario_.topology.is_switch[node] ? 1 : 0, port + 1, quanta != 0 ? 1 : 0);
}

std::string Results::fct() const {
  std::string text;
  for (const Finished& finished : finished_) {
    const Flow& flow = scenario_.flows[finished.flow];
    fmt::format_to(
        std::back_inserter(text), "{:08x} {:08x} {} {} {} {} {} {}\n", address_of(flow.source),
        address_of(flow.destination), flow.source_port, flow.destination_port, flow.bytes,
        flow.start.ns(), (finished.at - flow.start).ns(),
        standalone_time(flow, scenario_.config, paths_.between(flow.source, flow.destination))
            .ns());
  }
  return text;
}

std::string Results::summary(const Cost& cost) const {
  const Counters c = network_.counters();
  const double run = cost.run_seconds;
  std::string text = fmt::format(
      "STAT setup_s {:.3f} run_s {:.3f} events {} ev_per_s {:.0f} hops {} hops_per_s {:.0f} "
      "data_hops {} datahops_per_s {:.0f} wire_bytes {} ecn_marks {} drops {} pause_sent {} "
      "resume_sent {} maxrss_mb {:.1f} end_sim_ns {} flows_read {}\n",
      cost.setup_seconds, run, c.events, per_second(c.events, run), c.hops, per_second(c.hops, run),
      c.data_hops, per_second(c.data_hops, run), c.wire_bytes, c.marks, c.drops, c.pauses,
      c.resumes, cost.peak_mebibytes, scenario_.config.stop.ns(), scenario_.flows.size());
  network_.for_each_longest_queue([&](NodeIndex node, u32 port, u32 bytes) {
    if (bytes > kShownQueue)
      fmt::format_to(std::back_inserter(text), "MAXQ node {} port {} bytes {}\n", node, port + 1,
                     bytes);
  });
  if (const std::optional<Deadlock>& deadlock = network_.deadlock())
    fmt::format_to(std::back_inserter(text), "DEADLOCK at_ns {} queues {}: {}\n",
                   deadlock->seen.ns(), deadlock->queues, to_string(*deadlock));
  if (network_.flows_failed() != 0)
    fmt::format_to(std::back_inserter(text), "FAILED flows {}\n", network_.flows_failed());
  return text;
}

}  // namespace verbena::fabric::hpcc_ns3
