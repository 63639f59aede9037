#include "jobs/job_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fabric/scenario/units.h"

namespace verbena::jobs {
namespace {

constexpr double kGiga = 1e9;

std::string percent(Duration part, Duration whole) {
  const double share = whole == Duration() ? 0 : part.seconds() / whole.seconds();
  return fmt::format("{:.0f} %", 100 * share);
}

std::string time_text(double seconds) {
  return fabric::duration_text(ps(static_cast<i64>(seconds * 1e12)));
}

std::string line_of(const Job& job, const CollectiveResult& result) {
  const bool has_host_path = job.run.host_path.kind.has_value();
  const std::string name(name_of(result.shape.algorithm));
  if (!result.mistake.empty()) return fmt::format("{:<18} {}\n", name, result.mistake);
  std::string line =
      fmt::format("{:<18} {:>10} {:>8.2f} {:>8.2f}", name, time_text(result.seconds()),
                  result.algorithm_bandwidth() / kGiga, result.bus_bandwidth() / kGiga);
  if (result.by_packets) {
    const TimeSpent& spent = result.by_packets->spent;
    const Duration all = result.by_packets->time;
    line += fmt::format("  {:>7} {:>7} {:>8} {:>7} {:>8}", percent(spent.nvlink, all),
                        percent(spent.sending, all), percent(spent.distance, all),
                        percent(spent.waiting, all), percent(spent.overhead, all));
    if (has_host_path)
      line +=
          fmt::format(" {:>6} {:>7.2f}", percent(spent.host, all),
                      result.by_packets->cpu_time.seconds() / all.seconds() / result.shape.ranks);
    if (result.flow_seconds)
      line += fmt::format("  {:>10} {:>+6.1f} %", time_text(*result.flow_seconds),
                          100 * (*result.flow_seconds / all.seconds() - 1));
  }
  if (!result.by_packets)
    line += result.flow_error ? fmt::format("  {:>+6.1f} %", 100 * result.flow_error->error)
                              : fmt::format("  {:>8}", "-");
  return line + "\n";
}

// Returns a note on the column "error" if it is not the error of the job itself.
std::string error_note(const std::vector<CollectiveResult>& results) {
  for (const CollectiveResult& result : results)
    if (result.flow_error)
      return fmt::format(
          "at flow-level: fair rates instead of packets; error: of its time, as on {} GPUs with "
          "{} by packets\n",
          result.flow_error->gpus,
          fabric::bytes_text(static_cast<double>(result.flow_error->bytes)));
  return "";
}

std::string head_of(const Job& job) {
  std::string head =
      fmt::format("{:<18} {:>10} {:>8} {:>8}", "algorithm", "time", "algbw", "busbw");
  if (job.method != Method::kFlows)
    head += fmt::format("  {:>7} {:>7} {:>8} {:>7} {:>8}", "NVLink", "sending", "distance",
                        "waiting", "overhead");
  if (job.method != Method::kFlows && job.run.host_path.kind)
    head += fmt::format(" {:>6} {:>7}", "host", "cores");
  if (job.method == Method::kFlows) head += fmt::format("  {:>8}", "error");
  if (job.method == Method::kBoth) head += fmt::format("  {:>10} {:>8}", "flow-level", "error");
  return head + fmt::format("\n{:<18} {:>10} {:>8} {:>8}\n", "", "", "GB/s", "GB/s");
}

u64 lost_frames(const fabric::Counters& c) {
  return c.drops + c.early_drops + c.watchdog_drops + c.receiver_drops + c.unroutable + c.lost();
}

}  // namespace

std::string losses_text(const fabric::Counters& counters) {
  std::string text;
  const auto add = [&](u64 frames, std::string_view cause) {
    if (frames != 0) text += fmt::format(", {} {}", frames, cause);
  };
  add(counters.drops, "dropped by switches without room");
  add(counters.early_drops, "dropped by switches instead of marked");
  add(counters.watchdog_drops, "dropped by the PFC watchdog");
  add(counters.receiver_drops, "dropped by receivers without room");
  add(counters.unroutable, "without a route");
  add(counters.lost_on_dead_links, "lost on dead links");
  add(counters.corrupted, "corrupted on links");
  return text.empty() ? ", 0 drops" : text;
}

std::string waiting_text(const std::vector<NamedPackets>& runs) {
  constexpr double kMuch = 0.1;  // of the time: worth a line
  std::vector<std::string> names;
  u64 marks = 0;
  for (const auto& [name, packets] : runs) {
    if (packets->spent.waiting.seconds() < kMuch * packets->time.seconds()) continue;
    names.push_back(fmt::format("{} ({})", name, percent(packets->spent.waiting, packets->time)));
    marks += packets->counters.marks;
  }
  if (names.empty()) return "";
  return fmt::format(
      "much waiting in {}: flows share links{}; `verbena plan` tries each remedy\n",
      fmt::join(names, ", "),
      marks == 0 ? "" : fmt::format(", or congestion control slows them ({} marks)", marks));
}

double CollectiveResult::seconds() const {
  return by_packets ? by_packets->time.seconds() : flow_seconds.value_or(0);
}

double CollectiveResult::algorithm_bandwidth() const {
  return seconds() > 0 ? static_cast<double>(shape.bytes) / seconds() : 0;
}

double CollectiveResult::bus_bandwidth() const {
  return algorithm_bandwidth() * bus_factor(shape.operation, shape.ranks);
}

std::string text_of(const Job& job, const std::vector<CollectiveResult>& results) {
  const collectives::Shape& shape = job.shapes.front();
  std::string text = fmt::format(
      "{} of {}, {} GPUs in nodes of {}, {} channels{}\n", name_of(shape.operation),
      fabric::bytes_text(static_cast<double>(shape.bytes)), shape.ranks, shape.ranks_per_node,
      shape.channels, job.has_usual_channels ? " (by default, as NCCL)" : "");
  text += head_of(job);
  for (const CollectiveResult& result : results) text += line_of(job, result);
  text += error_note(results);
  for (const CollectiveResult& result : results)
    if (result.by_packets && result.by_packets->storage)
      text += fmt::format("{0}: {1}{0}: {2} ECN marks, {3} pauses\n",
                          name_of(result.shape.algorithm), text_of(*result.by_packets->storage),
                          result.by_packets->counters.marks, result.by_packets->counters.pauses);
  for (const CollectiveResult& result : results)
    if (result.by_packets && lost_frames(result.by_packets->counters) != 0)
      text += fmt::format("{}: {}\n", name_of(result.shape.algorithm),
                          losses_text(result.by_packets->counters).substr(2));
  for (const CollectiveResult& result : results)
    if (result.by_packets && result.by_packets->repairs.retransmissions != 0)
      text += fmt::format(
          "{}: {} packets sent again, {} timeouts\n", name_of(result.shape.algorithm),
          result.by_packets->repairs.retransmissions, result.by_packets->repairs.timeouts);
  std::vector<NamedPackets> runs;
  for (const CollectiveResult& result : results)
    if (result.by_packets) runs.emplace_back(name_of(result.shape.algorithm), &*result.by_packets);
  text += waiting_text(runs);
  return text;
}

std::string csv_of(const std::vector<CollectiveResult>& results) {
  std::string text =
      "operation,algorithm,ranks,ranks_per_node,bytes,channels,seconds,algbw,busbw,nvlink_seconds,"
      "sending_seconds,distance_seconds,waiting_seconds,overhead_seconds,messages,network_bytes,"
      "nvlink_bytes,wire_bytes,hops,marks,pauses,drops,host_seconds,cpu_seconds,"
      "retransmissions,timeouts,flow_level_seconds,flow_level_error,mistake\n";
  for (const CollectiveResult& r : results) {
    const PacketResult p = r.by_packets.value_or(PacketResult());
    text += fmt::format(
        "{},{},{},{},{},{},{:.12g},{:.9g},{:.9g},{:.12g},{:.12g},{:.12g},{:.12g},{:.12g},"
        "{},{},{},{},{},{},{},{},{:.12g},{:.12g},{},{},{},{},{}\n",
        name_of(r.shape.operation), name_of(r.shape.algorithm), r.shape.ranks,
        r.shape.ranks_per_node, r.shape.bytes, r.shape.channels, r.seconds(),
        r.algorithm_bandwidth(), r.bus_bandwidth(), p.spent.nvlink.seconds(),
        p.spent.sending.seconds(), p.spent.distance.seconds(), p.spent.waiting.seconds(),
        p.spent.overhead.seconds(), p.messages, p.network_bytes, p.nvlink_bytes,
        p.counters.wire_bytes, p.counters.hops, p.counters.marks, p.counters.pauses,
        p.counters.drops, p.spent.host.seconds(), p.cpu_time.seconds(), p.repairs.retransmissions,
        p.repairs.timeouts, r.flow_seconds ? fmt::format("{:.12g}", *r.flow_seconds) : "",
        r.flow_error ? fmt::format("{:.4g}", r.flow_error->error) : "", r.mistake);
  }
  return text;
}

}  // namespace verbena::jobs
