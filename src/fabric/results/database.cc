#include "fabric/results/database.h"

#include <cstdio>

#include <fmt/format.h>

#include "fabric/results/sqlite_file.h"

namespace verbena::fabric {
namespace {

using Rows = SQLiteFile::Rows;

void write_run(SQLiteFile& file, const Simulation& simulation, const Summary& summary) {
  Rows rows(file, "run", "key TEXT PRIMARY KEY, value");
  const auto put = [&rows](std::string_view key, auto value) { rows.add(key).add(value).end(); };
  const bool is_complete =
      summary.outcome == Outcome::kComplete || summary.outcome == Outcome::kTimeIsUp;
  put("schema", i64{1});
  put("status", is_complete ? "complete" : name_of(summary.outcome));
  put("outcome", name_of(summary.outcome));
  put("scenario", std::string_view(simulation.scenario().text));
  put("technology", name_of(simulation.scenario().network.technology));
  put("seed", simulation.scenario().network.seed);
  put("simulated_ps", summary.simulated.ps());
  put("sample_interval_ps", simulation.samples().interval().ps());
  put("flows", summary.flows);
  put("flows_finished", summary.finished);
  put("flows_failed", summary.failed);
  put("link_hops", summary.hops);
  put("events", summary.events);
  put("marks", summary.marks);
  put("pauses", summary.pauses);
  put("credit_updates", simulation.network().counters().credit_updates);
  put("drops", summary.drops);
  put("lost", summary.lost);
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

void write_nodes(SQLiteFile& file, const Simulation& simulation) {
  const Plan& plan = simulation.scenario().plan;
  const std::vector<u32> tier = tiers(plan.topology);
  Rows rows(file, "nodes", "node INTEGER PRIMARY KEY, name TEXT, is_switch INTEGER, tier INTEGER");
  for (NodeIndex node = 0; node < plan.topology.nodes; ++node)
    rows.add(node)
        .add(plan.names[node])
        .add(u32{plan.topology.is_switch[node] ? 1u : 0u})
        .add(tier[node])
        .end();
}

void write_links(SQLiteFile& file, const Simulation& simulation) {
  const Plan& plan = simulation.scenario().plan;
  Rows rows(file, "links",
            "link INTEGER PRIMARY KEY, name TEXT, a INTEGER, b INTEGER, a_port INTEGER, "
            "b_port INTEGER, rate_bps INTEGER, delay_ps INTEGER, error_rate REAL");
  for (u32 i = 0; i < plan.topology.links.size(); ++i) {
    const TopologyLink& link = plan.topology.links[i];
    rows.add(i)
        .add(plan.link_name(i))
        .add(link.a)
        .add(link.b)
        .add(simulation.ports().ends()[2 * i].port)
        .add(simulation.ports().ends()[2 * i + 1].port)
        .add(link.config.rate.bps())
        .add(link.config.delay.ps())
        .add(link.config.error_rate)
        .end();
  }
}

// By what each end of a link has sent.
void write_ports(SQLiteFile& file, const Simulation& simulation, const Summary& summary) {
  std::vector<u32> longest(simulation.ports().ends().size());
  simulation.network().for_each_longest_queue([&](NodeIndex node, u32 port, u32 octets) {
    longest[simulation.ports().end_of(node, port)] = octets;
  });
  Rows rows(file, "ports",
            "node INTEGER, port INTEGER, link INTEGER, peer INTEGER, sent_octets INTEGER, "
            "utilization REAL, longest_queue_octets INTEGER, marks INTEGER, paused_ps INTEGER, "
            "waited_for_credits_ps INTEGER");
  for (u32 i = 0; i < longest.size(); ++i) {
    const LinkEnd& end = simulation.ports().ends()[i];
    const Port& port = simulation.network().port(end.node, end.port);
    const SwitchNode* const at_switch = simulation.network().switch_at(end.node);
    const double bits = static_cast<double>(port.rate.bps()) * summary.simulated.seconds();
    rows.add(end.node)
        .add(end.port)
        .add(end.link)
        .add(end.peer)
        .add(simulation.network().sent_octets(end.node, end.port))
        .add(bits > 0 ? static_cast<double>(simulation.network().sent_octets(end.node, end.port)) *
                            8 / bits
                      : 0.0)
        .add(longest[i])
        .add(at_switch != nullptr ? at_switch->marked_frames(end.port) : 0)
        .add(simulation.paused_times()[i].ps())
        .add(simulation.network().waited_for_credits(end.node, end.port).ps())
        .end();
  }
}

void write_flows(SQLiteFile& file, const Simulation& simulation) {
  Rows rows(file, "flows",
            "flow INTEGER PRIMARY KEY, source INTEGER, destination INTEGER, octets INTEGER, "
            "priority INTEGER, start_ps INTEGER, finish_ps INTEGER, alone_ps INTEGER, "
            "slowdown REAL");
  for (u32 i = 0; i < simulation.flows().size(); ++i) {
    const Flow& flow = simulation.scenario().flows[i];
    const Simulation::FlowResult& result = simulation.flows()[i];
    rows.add(i)
        .add(flow.source)
        .add(flow.destination)
        .add(flow.octets)
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

void write_pauses(SQLiteFile& file, const Simulation& simulation) {
  Rows rows(file, "pauses",
            "time_ps INTEGER, node INTEGER, port INTEGER, priority INTEGER, quanta INTEGER");
  for (const Simulation::Pause& pause : simulation.pauses()) {
    const LinkEnd& end = simulation.ports().ends()[pause.link_end];
    rows.add(pause.at.ps())
        .add(end.node)
        .add(end.port)
        .add(u32{pause.priority})
        .add(u32{pause.quanta})
        .end();
  }
}

void write_queues(SQLiteFile& file, const Simulation& simulation) {
  const std::vector<Time>& times = simulation.samples().times();
  Rows rows(file, "queues", "time_ps INTEGER, node INTEGER, port INTEGER, octets INTEGER");
  for (u32 i = 0; i < simulation.queues().size(); ++i) {
    const LinkEnd& end = simulation.ports().ends()[i];
    for (const SeriesSet::Point& point : simulation.queues().of(i))
      if (point.sample < times.size())
        rows.add(times[point.sample].ps()).add(end.node).add(end.port).add(point.value).end();
  }
}

// What counts from the beginning, as what came since the sample before.
template <typename Write>
void for_each_growth(const Simulation& simulation, const SeriesSet& series, const Write& write) {
  const std::vector<Time>& times = simulation.samples().times();
  for (u32 i = 0; i < series.size(); ++i) {
    u64 before = 0;
    for (const SeriesSet::Point& point : series.of(i)) {
      if (point.sample >= times.size()) continue;
      const Time from = point.sample == 0 ? Time() : times[point.sample - 1];
      write(simulation.ports().ends()[i], times[point.sample], times[point.sample] - from,
            point.value - before);
      before = point.value;
    }
  }
}

void write_marks(SQLiteFile& file, const Simulation& simulation) {
  Rows rows(file, "marks", "time_ps INTEGER, node INTEGER, port INTEGER, marks INTEGER");
  for_each_growth(simulation, simulation.marks(),
                  [&](const LinkEnd& end, Time at, Duration, u64 marks) {
                    rows.add(at.ps()).add(end.node).add(end.port).add(marks).end();
                  });
}

void write_loads(SQLiteFile& file, const Simulation& simulation) {
  Rows rows(file, "loads",
            "time_ps INTEGER, node INTEGER, port INTEGER, octets INTEGER, bps INTEGER");
  for_each_growth(simulation, simulation.sent(),
                  [&](const LinkEnd& end, Time at, Duration since, u64 octets) {
                    if (since <= Duration()) return;
                    rows.add(at.ps())
                        .add(end.node)
                        .add(end.port)
                        .add(octets)
                        .add(static_cast<i64>(static_cast<double>(octets) * 8 / since.seconds()))
                        .end();
                  });
}

void write_rates(SQLiteFile& file, const Simulation& simulation) {
  const std::vector<Time>& times = simulation.samples().times();
  Rows rows(file, "rates", "time_ps INTEGER, flow INTEGER, bps INTEGER");
  for (u32 flow = 0; flow < simulation.rates().size(); ++flow)
    for (const SeriesSet::Point& point : simulation.rates().of(flow))
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
    write_nodes(file, simulation);
    write_links(file, simulation);
    write_ports(file, simulation, summary);
    write_flows(file, simulation);
    write_pauses(file, simulation);
    write_queues(file, simulation);
    write_marks(file, simulation);
    write_loads(file, simulation);
    write_rates(file, simulation);
    if (const std::string error = file.finish(); !error.empty())
      return fmt::format("{}: {}", path, error);
  }
  if (std::rename(unfinished.c_str(), path.c_str()) == 0) return {};
  return fmt::format("cannot write {}", path);
}

}  // namespace verbena::fabric
