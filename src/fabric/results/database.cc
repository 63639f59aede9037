#include "fabric/results/database.h"

#include <cstdio>

#include <fmt/format.h>

#include "fabric/results/network_tables.h"

namespace verbena::fabric {
namespace {

using Rows = SQLiteFile::Rows;

void write_run(SQLiteFile& file, const Simulation& simulation, const Summary& summary) {
  Rows rows(file, "run", "key TEXT PRIMARY KEY, value");
  const auto put = [&rows](std::string_view key, auto value) { rows.add(key).add(value).end(); };
  const bool is_complete =
      summary.outcome == Outcome::kComplete || summary.outcome == Outcome::kTimeIsUp;
  put("schema", i64{2});
  put("status", is_complete ? "complete" : name_of(summary.outcome));
  put("outcome", name_of(summary.outcome));
  put("scenario", std::string_view(simulation.scenario().text));
  put("technology", name_of(simulation.scenario().network.technology));
  put("seed", simulation.scenario().network.seed);
  put("simulated_ps", summary.simulated.ps());
  put("sample_interval_ps", simulation.record().samples().interval().ps());
  put("flows", summary.flows);
  put("flows_finished", summary.finished);
  put("flows_failed", summary.failed);
  put("link_hops", summary.hops);
  put("events", summary.events);
  put("marks", summary.marks);
  put("pauses", summary.pauses);
  put("credit_updates", simulation.network().counters().credit_updates);
  put("drops", summary.drops);
  put("receiver_drops", summary.receiver_drops);
  put("unroutable", summary.unroutable);
  put("lost", summary.lost_on_dead_links + summary.corrupted);
  put("lost_on_dead_links", summary.lost_on_dead_links);
  put("corrupted", summary.corrupted);
  put("retransmissions", summary.repairs.retransmissions);
  put("timeouts", summary.repairs.timeouts);
  if (const auto deadlock = deadlock_text(simulation)) put("deadlock", std::string_view(*deadlock));
  put("watchdog_storms", simulation.network().counters().storms);
  put("watchdog_drops", simulation.network().counters().watchdog_drops);
  put("frames_in_flight", simulation.network().frames_in_flight());
}

void write_summary(SQLiteFile& file, const Summary& summary) {
  Rows rows(file, "summary", "name TEXT PRIMARY KEY, value TEXT");
  for (const SummaryLine& line : lines_of(summary)) rows.add(line.name).add(line.value).end();
}

void write_flows(SQLiteFile& file, const Simulation& simulation) {
  Rows rows(file, "flows",
            "flow INTEGER PRIMARY KEY, source INTEGER, destination INTEGER, bytes INTEGER, "
            "priority INTEGER, start_ps INTEGER, finish_ps INTEGER, alone_ps INTEGER, "
            "slowdown REAL");
  for (u32 i = 0; i < simulation.flows().size(); ++i) {
    const Flow& flow = simulation.scenario().flows[i];
    const Simulation::FlowResult& result = simulation.flows()[i];
    rows.add(i)
        .add(flow.source)
        .add(flow.destination)
        .add(flow.bytes)
        .add(u32{flow.priority})
        .add(flow.start.ps());
    if (result.finished == Time::never())
      rows.add_null().add(result.alone.ps()).add_null();
    else
      rows.add(result.finished.ps())
          .add(result.alone.ps())
          .add(static_cast<double>((result.finished - flow.start).ps()) /
               static_cast<double>(result.alone.ps()));
    rows.end();
  }
}

void write_rates(SQLiteFile& file, const Simulation& simulation) {
  const std::vector<Time>& times = simulation.record().samples().times();
  Rows rows(file, "rates", "time_ps INTEGER, flow INTEGER, bps INTEGER");
  for (u32 flow = 0; flow < simulation.record().rates().size(); ++flow)
    for (const SeriesSet::Point& point : simulation.record().rates().of(flow))
      if (point.sample < times.size())
        rows.add(times[point.sample].ps()).add(flow).add(point.value).end();
}

}  // namespace

std::string write_database(const std::string& path, const Simulation& simulation,
                           const Summary& summary) {
  const std::string unfinished = path + ".part";
  {
    SQLiteFile file(unfinished);
    write_run(file, simulation, summary);
    write_summary(file, summary);
    write_plan(file, simulation.scenario().plan, simulation.ports());
    write_faults(file, listed(simulation.scenario().network.faults, simulation.ports()));
    write_flows(file, simulation);
    NetworkTables(file, "").add(simulation.record(), simulation.totals(), "");
    write_rates(file, simulation);
    if (const std::string error = file.finish(); !error.empty()) {
      (void)std::remove(unfinished.c_str());
      return fmt::format("{}: {}", path, error);
    }
  }
  if (std::rename(unfinished.c_str(), path.c_str()) == 0) return {};
  return fmt::format("cannot write {}", path);
}

}  // namespace verbena::fabric
