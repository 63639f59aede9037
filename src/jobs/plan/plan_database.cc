// results.sqlite of a plan: every number of its text is in a row, or follows from some.
// docs/planning.md
#include <fmt/format.h>

#include "fabric/results/sqlite_file.h"
#include "jobs/plan/plan_report.h"

namespace verbena::jobs {
namespace {

using Rows = fabric::SQLiteFile::Rows;

// Returns the settings with which `verbena sim` repeats the run.
std::string settings_text(const Candidate& candidate) {
  std::string text;
  for (const fabric::Setting& setting : candidate.settings)
    text += fmt::format("{}--set '{}={}'", text.empty() ? "" : " ", setting.key, setting.value);
  return text;
}

void add_run(Rows& rows, const Candidate& candidate) {
  rows.add(std::string_view(candidate.topology))
      .add(name_of(candidate.technology))
      .add(std::string_view(candidate.variant))
      .add(std::string_view(settings_text(candidate)));
  const Measured& m = candidate.measured;
  const std::string& mistake = candidate.mistake.empty() ? m.mistake : candidate.mistake;
  rows.add(std::string_view(mistake));
  if (!candidate.is_done()) {
    for (u32 i = 0; i < 18; ++i) rows.add_null();
    return rows.end();
  }
  const PacketResult& p = m.packets;
  rows.add(m.time.ps()).add(std::string_view(m.name)).add(m.bus_bandwidth);
  rows.add(p.latencies.quantile(0.5).ps()).add(p.latencies.quantile(0.99).ps());
  rows.add(p.cpu_time.ps()).add(m.cores).add(candidate.job.cluster.ranks());
  rows.add(p.messages).add(p.network_bytes).add(p.counters.hops).add(p.counters.events);
  rows.add(p.counters.marks).add(p.counters.pauses).add(p.counters.drops);
  rows.add(p.repairs.retransmissions).add(p.repairs.timeouts).add(cost_of_work(candidate)).end();
}

void write_runs(fabric::SQLiteFile& file, const PlanResults& results) {
  Rows rows(
      file, "runs",
      "topology TEXT, technology TEXT, variant TEXT, settings TEXT, mistake TEXT, time_ps INTEGER, "
      "name TEXT, "
      "busbw REAL, latency_p50_ps INTEGER, latency_p99_ps INTEGER, cpu_ps INTEGER, "
      "cores REAL, gpus INTEGER, messages INTEGER, network_bytes INTEGER, link_hops INTEGER, "
      "events INTEGER, marks INTEGER, pauses INTEGER, drops INTEGER, retransmissions INTEGER, "
      "timeouts INTEGER, second_dollars REAL");
  for (const Candidate& candidate : results.candidates) add_run(rows, candidate);
  for (const Tried& tried : results.tried) add_run(rows, tried.candidate);
  for (const Candidate& candidate : results.varied) add_run(rows, candidate);
}

void write_bills(fabric::SQLiteFile& file, const PlanResults& results) {
  Rows rows(file, "bill",
            "topology TEXT, technology TEXT, item TEXT, count INTEGER, dollars_low REAL, "
            "dollars_high REAL, watts_low REAL, watts_high REAL, source TEXT");
  for (const Candidate& candidate : results.candidates)
    for (const BillItem& item : candidate.bill.items)
      rows.add(std::string_view(candidate.topology))
          .add(name_of(candidate.technology))
          .add(std::string_view(item.what))
          .add(item.count)
          .add(item.dollars.low)
          .add(item.dollars.high)
          .add(item.watts.low)
          .add(item.watts.high)
          .add(std::string_view(item.source))
          .end();
}

void write_gpus(fabric::SQLiteFile& file, const PlanResults& results) {
  Rows rows(file, "gpus", "topology TEXT, technology TEXT, dollars_low REAL, dollars_high REAL");
  for (const Candidate& candidate : results.candidates) {
    if (!candidate.mistake.empty()) continue;
    const Range dollars = price_of_gpus(candidate.job);
    rows.add(std::string_view(candidate.topology))
        .add(name_of(candidate.technology))
        .add(dollars.low)
        .add(dollars.high)
        .end();
  }
}

void write_tuning(fabric::SQLiteFile& file, const PlanResults& results) {
  Rows rows(file, "tuning", "rate_bps INTEGER, cable_metres INTEGER, key TEXT, value REAL");
  for (const TunedLinks& links : results.tuned) {
    const auto put = [&](std::string_view key, double value) {
      rows.add(links.request.rate.bps()).add(links.request.cable_metres).add(key).add(value).end();
    };
    const Headroom& headroom = links.tuning.headroom;
    put("headroom_bytes", static_cast<double>(headroom.sum()));
    put("headroom_frame_bytes", static_cast<double>(headroom.frame));
    put("headroom_pause_bytes", static_cast<double>(headroom.pause));
    put("headroom_cable_bytes", static_cast<double>(headroom.cable));
    put("headroom_phy_bytes", static_cast<double>(headroom.phy));
    put("headroom_response_bytes", static_cast<double>(headroom.response));
    put("headroom_last_bytes", static_cast<double>(headroom.last));
    put("k_min_bytes", static_cast<double>(links.tuning.ecn.k_min));
    put("k_max_bytes", static_cast<double>(links.tuning.ecn.k_max));
    put("p_max", links.tuning.ecn.p_max);
    const DCQCNParameters& dcqcn = links.tuning.dcqcn;
    put("dcqcn_additive_increase_bps", static_cast<double>(dcqcn.additive_increase.bps()));
    put("dcqcn_hyper_increase_bps", static_cast<double>(dcqcn.hyper_increase.bps()));
    put("dcqcn_increase_interval_ps", static_cast<double>(dcqcn.increase_interval.ps()));
    put("dcqcn_byte_counter_bytes", static_cast<double>(dcqcn.byte_counter));
    put("dcqcn_g", dcqcn.g);
  }
}

void write_proof(fabric::SQLiteFile& file, const PlanResults& results) {
  Rows rows(file, "proof",
            "settings TEXT, senders INTEGER, bytes INTEGER, "
            "headroom_bytes INTEGER, least_headroom_bytes INTEGER, drops INTEGER, "
            "pauses INTEGER, marks INTEGER, incast_ps INTEGER, paused_ps INTEGER, "
            "victim_slowdown REAL, finished INTEGER");
  if (!results.proof) return;
  const Proof& proof = *results.proof;
  for (const ProofRun& run : proof.runs)
    rows.add(std::string_view(run.name))
        .add(proof.senders)
        .add(proof.bytes)
        .add(run.headroom_bytes)
        .add(proof.least_headroom_bytes)
        .add(run.drops)
        .add(run.pauses)
        .add(run.marks)
        .add(run.incast.ps())
        .add(run.longest_pause.ps())
        .add(run.victim_slowdown)
        .add(u32{run.is_finished})
        .end();
}

void write_advice(fabric::SQLiteFile& file, const PlanResults& results) {
  Rows rows(file, "advice", "kind TEXT, text TEXT");
  const auto put = [&rows](std::string_view kind, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) rows.add(kind).add(std::string_view(line)).end();
  };
  if (results.recommendation.best != nullptr)
    put("recommended", {results.recommendation.best->name()});
  put("reason", results.recommendation.reasons);
  put("change", results.recommendation.changes);
  put("variant", results.lessons);
}

}  // namespace

std::string write_database(const std::string& path, const PlanResults& results) {
  fabric::SQLiteFile file(path);
  write_runs(file, results);
  write_bills(file, results);
  write_gpus(file, results);
  write_tuning(file, results);
  write_proof(file, results);
  write_advice(file, results);
  return file.finish();
}

}  // namespace verbena::jobs
