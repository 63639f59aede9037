#include "jobs/plan/plan_report.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "fabric/scenario/units.h"
#include "jobs/plan/eos.h"
#include "jobs/plan/nic_script.h"
#include "jobs/plan/nvue.h"
#include "jobs/plan/plan_text.h"
#include "jobs/plan/sonic.h"

namespace verbena::jobs {
namespace {

constexpr u32 kLanesOfPort = 8;  // SONiC names a port by its first lane

std::string what_runs(const Job& job) {
  if (job.training) return fmt::format("a training step of {}", job.training->model.name);
  if (job.inference) return fmt::format("an inference batch of {}", job.inference->model.name);
  if (job.imported) return "a step of execution traces";
  const collectives::Shape& shape = job.shapes.front();
  return fmt::format("{} of {}", name_of(shape.operation),
                     fabric::bytes_text(static_cast<double>(shape.bytes)));
}

std::string links_text(const fabric::Topology& topology) {
  std::vector<std::pair<Rate, Duration>> kinds;
  for (const fabric::TopologyLink& link : topology.links)
    if (const std::pair kind(link.config.rate, link.config.delay);
        std::ranges::find(kinds, kind) == kinds.end())
      kinds.push_back(kind);
  std::string text;
  for (const auto& [rate, delay] : kinds)
    text += fmt::format("{}{} and {}", text.empty() ? "" : "; ",
                        fabric::rate_text(static_cast<double>(rate.bps())),
                        fabric::duration_text(delay));
  return text;
}

const Candidate* first_read(const PlanResults& results) {
  for (const Candidate& candidate : results.candidates)
    if (candidate.mistake.empty()) return &candidate;
  return nullptr;
}

std::string head_of(const PlanResults& results, const Candidate& first) {
  const Job& job = first.job;
  std::string text = fmt::format("{}: {} on {} GPUs in nodes of {}\n", results.file, what_runs(job),
                                 job.cluster.ranks(), job.cluster.gpus_per_node);
  text += wrapped(
      fmt::format(
          "Held equal: GPUs and what they do, a NIC for each host of the topology, links ({}), the "
          "topology, the seed. Not equal: what it costs and draws. A NIC reaches the GPU's memory "
          "by itself (gpudirect), for TCP by the kernel and copies (kernel_tcp), unless hosts.path "
          "says otherwise. {}",
          links_text(job.plan.topology), latency_text()),
      0);
  return text;
}

std::string path_text(const Job& job) {
  return job.run.host_path.kind ? std::string(model_of(*job.run.host_path.kind).name) : "none";
}

std::string line_of(const Candidate& candidate, std::size_t width) {
  std::string line = fmt::format("{:<{}}", candidate.name(), width);
  if (!candidate.mistake.empty()) return line + "  " + candidate.mistake + "\n";
  if (!candidate.measured.mistake.empty()) return line + "  " + candidate.measured.mistake + "\n";
  const Measured& m = candidate.measured;
  if (candidate.job.method == Method::kFlows)
    return line +
           fmt::format(" {:>10} {:>8.2f} {:>10} {:>20} {:>16}\n", fabric::duration_text(m.time),
                       m.bus_bandwidth / 1e9,
                       m.flow_error ? fmt::format("{:+.1f} %", 100 * m.flow_error->error) : "-",
                       dollars_text(candidate.bill.dollars), watts_text(candidate.bill.watts));
  return line + fmt::format(" {:>10} {:>8.2f} {:>10} {:>7.2f}  {:<11} {:>20} {:>16} {:>7} {:>7}\n",
                            fabric::duration_text(m.time), m.bus_bandwidth / 1e9,
                            fabric::duration_text(m.packets.latencies.quantile(0.99)), m.cores,
                            path_text(candidate.job), dollars_text(candidate.bill.dollars),
                            watts_text(candidate.bill.watts), m.packets.counters.pauses,
                            m.packets.repairs.retransmissions);
}

std::size_t name_width(const std::vector<Candidate>& candidates) {
  std::size_t width = 10;
  for (const Candidate& candidate : candidates) width = std::max(width, candidate.name().size());
  return width;
}

// Flow-level has no messages, pauses and host paths to report.
std::string flows_head(std::size_t width) {
  return fmt::format("{:<{}} {:>10} {:>8} {:>10} {:>20} {:>16}\n{:<{}} {:>10} {:>8} {:>10}\n", "",
                     width, "time", "busbw", "error", "network", "power", "", width, "", "GB/s",
                     "");
}

std::string table_of(const PlanResults& results) {
  const std::size_t width = name_width(results.candidates);
  if (const Candidate* const first = first_read(results);
      first != nullptr && first->job.method == Method::kFlows) {
    std::string text = flows_head(width);
    for (const Candidate& candidate : results.candidates) text += line_of(candidate, width);
    return text +
           "At flow-level; the time is corrected by the error that a smaller job of this kind "
           "has beside packets.\n";
  }
  std::string text = fmt::format(
      "{:<{}} {:>10} {:>8} {:>10} {:>7}  {:<11} {:>20} {:>16} {:>7} {:>7}\n", "", width, "time",
      "busbw", "p99", "cores", "host path", "network", "power", "pauses", "resent");
  text +=
      fmt::format("{:<{}} {:>10} {:>8} {:>10} {:>7}\n", "", width, "", "GB/s", "message", "a GPU");
  for (const Candidate& candidate : results.candidates) text += line_of(candidate, width);
  return text;
}

std::string notes_of(const PlanResults& results) {
  std::string text;
  for (const Candidate& candidate : results.candidates) {
    if (!candidate.is_done()) continue;
    std::string note = candidate.name() + ": ";
    if (!candidate.measured.extrapolated_from.empty())
      note += fmt::format("extrapolated from runs of {}, since the job has too many events; ",
                          candidate.measured.extrapolated_from);
    if (!candidate.measured.name.empty())
      note += fmt::format("busbw of {}; ", candidate.measured.name);
    for (const BillItem& item : candidate.bill.items)
      note += fmt::format("{}{} {}", &item == &candidate.bill.items.front() ? "" : ", ", item.count,
                          item.what);
    text += wrapped(note, 2).substr(2);
    if (!candidate.bill.can_be_had()) text += wrapped(candidate.bill.shortfall, 2);
    if (!candidate.job.left_out.empty())
      text += wrapped(fmt::format("left out of the file, since other technologies have it: {}",
                                  fmt::join(candidate.job.left_out, ", ")),
                      2);
  }
  return text;
}

std::string tuning_of(const PlanResults& results) {
  std::string text = "To be tuned\n";
  std::vector<fabric::Technology> told;
  for (const Candidate& candidate : results.candidates) {
    if (!candidate.mistake.empty() || std::ranges::find(told, candidate.technology) != told.end())
      continue;
    told.push_back(candidate.technology);
    text += fmt::format("  {:<11}", name_of(candidate.technology)) +
            wrapped(what_to_tune(candidate), 14).substr(13);
  }
  return text;
}

std::string list_of(std::string_view title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = fmt::format("\n{}\n", title);
  for (const std::string& line : lines) text += "  - " + wrapped(line, 4).substr(4);
  return text;
}

std::string proof_of(const PlanResults& results) {
  if (!results.proof) return "";
  const TunedLinks& links = results.tuned.front();
  const ProofRequest request{links.request, links.tuning, first_read(results)->job.network,
                             results.proof_ports};
  return fmt::format(
      "\nProof of RoCEv2's settings: the worst that a switch of this topology can "
      "meet\n{}",
      text_of(request, *results.proof));
}

}  // namespace

u32 ports_of_largest_switch(const fabric::Topology& topology) {
  std::vector<u32> ports(topology.nodes);
  for (const fabric::TopologyLink& link : topology.links)
    for (const fabric::NodeIndex node : {link.a, link.b})
      if (topology.is_switch[node]) ++ports[node];
  return ports.empty() ? 0 : *std::ranges::max_element(ports);
}

std::vector<TunedLinks> tuned_links(const Job& job, u64 switch_buffer_bytes, u32 cable_metres) {
  std::vector<TunedLinks> result;
  const fabric::Topology& topology = job.plan.topology;
  const u32 ports = ports_of_largest_switch(topology);
  for (const fabric::TopologyLink& link : topology.links) {
    TunedLinks links;
    links.request = {
        .rate = link.config.rate,
        .cable_metres = cable_metres != 0 ? cable_metres : metres_of(link.config.delay),
        .mtu = static_cast<u32>(bytes(job.network.host(link.config).device.active_mtu)),
        .buffer_bytes = switch_buffer_bytes,
        .switch_ports = ports};
    links.of_hosts = !topology.is_switch[link.a] || !topology.is_switch[link.b];
    const auto same = std::ranges::find_if(result, [&](const TunedLinks& known) {
      return known.request.rate == links.request.rate &&
             known.request.cable_metres == links.request.cable_metres;
    });
    if (same != result.end()) {
      same->of_hosts |= links.of_hosts;
      continue;
    }
    links.tuning = tune(links.request);
    result.push_back(links);
  }
  std::ranges::stable_partition(result, [](const TunedLinks& links) { return links.of_hosts; });
  return result;
}

std::string text_of(const PlanResults& results) {
  const Candidate* const first = first_read(results);
  if (first == nullptr) return "";
  std::string text = head_of(results, *first) + "\n" + table_of(results) + "\n" + notes_of(results);
  text +=
      "Prices and watts are ranges, many of them estimates: `verbena plan --catalogue` has their\n"
      "sources and years; check your quote.\n\n";
  if (results.is_interrupted) text += "Interrupted: what follows has the runs that had ended.\n\n";
  text += tuning_of(results);
  text += causes_text(results.candidates, results.tried);
  if (const Candidate* const best = results.recommendation.best; best != nullptr)
    text += fmt::format("\nRecommended: {}{}\n", best->name(),
                        best->variant.empty() ? "" : ", with " + best->variant);
  else
    text += results.is_interrupted
                ? "\nInterrupted before anything could be recommended\n"
                : "\nNothing can be recommended: no technology both ran and can be had\n";
  text += list_of("Why", results.recommendation.reasons);
  text += list_of("What would change it", results.recommendation.changes);
  text += list_of("With the job changed (each simulated)", results.lessons);
  return text + proof_of(results);
}

std::vector<PlanFile> settings_files(const PlanResults& results) {
  std::vector<PlanFile> files;
  for (const TunedLinks& links : results.tuned) {
    std::vector<std::string> sonic_ports, eos_ports;
    for (u32 i = 0; i < links.request.switch_ports; ++i) {
      sonic_ports.push_back(fmt::format("Ethernet{}", i * kLanesOfPort));
      eos_ports.push_back(fmt::format("Ethernet{}/1", i + 1));
    }
    const std::string of = results.tuned.size() == 1
                               ? ""
                               : fmt::format("_{}G_{}m", links.request.rate.bps() / 1'000'000'000,
                                             links.request.cable_metres);
    files.push_back({"tuning" + of + ".txt", text_of(links.request, links.tuning)});
    files.push_back(
        {"sonic" + of + ".json", sonic_config(links.request, links.tuning, sonic_ports)});
    files.push_back({"nvue" + of + ".txt", nvue_commands(links.request, links.tuning)});
    files.push_back({"eos" + of + ".txt", eos_config(links.request, links.tuning, eos_ports)});
    if (links.of_hosts)
      files.push_back({"nic" + of + ".sh", nic_script(links.request, links.tuning)});
  }
  return files;
}

}  // namespace verbena::jobs
