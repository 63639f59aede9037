#include "fabric/results/network_tables.h"

#include <string>

namespace verbena::fabric {
namespace {

std::string with(std::string_view label_column, std::string columns) {
  if (!label_column.empty()) columns += ", " + std::string(label_column);
  return columns;
}

}  // namespace

void write_plan(SQLiteFile& file, const Plan& plan, const PortMap& ports) {
  const std::vector<u32> tier = tiers(plan.topology);
  SQLiteFile::Rows nodes(file, "nodes",
                         "node INTEGER PRIMARY KEY, name TEXT, is_switch INTEGER, tier INTEGER");
  for (NodeIndex node = 0; node < plan.topology.nodes; ++node)
    nodes.add(node)
        .add(plan.names[node])
        .add(u32{plan.topology.is_switch[node] ? 1u : 0u})
        .add(tier[node])
        .end();
  SQLiteFile::Rows links(file, "links",
                         "link INTEGER PRIMARY KEY, name TEXT, a INTEGER, b INTEGER, "
                         "a_port INTEGER, b_port INTEGER, rate_bps INTEGER, delay_ps INTEGER, "
                         "error_rate REAL");
  for (u32 i = 0; i < plan.topology.links.size(); ++i) {
    const TopologyLink& link = plan.topology.links[i];
    links.add(i).add(plan.link_name(i)).add(link.a).add(link.b);
    links.add(ports.ends()[2 * i].port).add(ports.ends()[2 * i + 1].port);
    links.add(link.config.rate.bps()).add(link.config.delay.ps()).add(link.config.error_rate).end();
  }
}

void write_faults(SQLiteFile& file, const std::vector<ListedFault>& faults) {
  SQLiteFile::Rows rows(file, "faults",
                        "link INTEGER, what TEXT, from_ps INTEGER, until_ps INTEGER");
  const auto add = [&rows](const std::optional<Time>& time) {
    time ? rows.add(time->ps()) : rows.add_null();
  };
  for (const ListedFault& fault : faults) {
    rows.add(fault.link).add(fault.what);
    add(fault.from);
    add(fault.until);
    rows.end();
  }
}

NetworkTables::NetworkTables(SQLiteFile& file, std::string_view label_column)
    : is_labelled_(!label_column.empty()),
      ports_(file, "ports",
             with(label_column,
                  "node INTEGER, port INTEGER, link INTEGER, peer INTEGER, sent_bytes INTEGER, "
                  "utilization REAL, longest_queue_bytes INTEGER, marks INTEGER, "
                  "paused_ps INTEGER, waited_for_credits_ps INTEGER")),
      pauses_(file, "pauses",
              with(label_column,
                   "time_ps INTEGER, node INTEGER, port INTEGER, priority INTEGER, "
                   "quanta INTEGER")),
      queues_(file, "queues",
              with(label_column, "time_ps INTEGER, node INTEGER, port INTEGER, bytes INTEGER")),
      marks_(file, "marks",
             with(label_column, "time_ps INTEGER, node INTEGER, port INTEGER, marks INTEGER")),
      loads_(file, "loads",
             with(label_column,
                  "time_ps INTEGER, node INTEGER, port INTEGER, bytes INTEGER, bps INTEGER")),
      waits_(file, "waits",
             with(label_column, "time_ps INTEGER, node INTEGER, port INTEGER, ps INTEGER")) {}

void NetworkTables::add(const NetworkRecord& record, const std::vector<PortTotal>& totals,
                        std::string_view label) {
  label_ = label;
  add_ports(record, totals);
  add_pauses(record);
  add_queues(record);
  add_marks(record);
  add_loads(record);
  add_waits(record);
}

void NetworkTables::end(Rows& rows) const {
  if (is_labelled_) rows.add(label_);
  rows.end();
}

// By what each end of a link has sent.
void NetworkTables::add_ports(const NetworkRecord& record, const std::vector<PortTotal>& totals) {
  for (u32 i = 0; i < totals.size(); ++i) {
    const LinkEnd& place = record.ports().ends()[i];
    const PortTotal& total = totals[i];
    ports_.add(place.node).add(place.port).add(place.link).add(place.peer);
    ports_.add(total.sent_bytes).add(total.utilization);
    ports_.add(total.longest_queue_bytes).add(total.marks);
    ports_.add(record.paused_times()[i].ps()).add(total.waited_for_credits.ps());
    end(ports_);
  }
}

void NetworkTables::add_pauses(const NetworkRecord& record) {
  for (const NetworkRecord::Pause& pause : record.pauses()) {
    const LinkEnd& place = record.ports().ends()[pause.link_end];
    pauses_.add(pause.at.ps()).add(place.node).add(place.port);
    pauses_.add(u32{pause.priority}).add(u32{pause.quanta});
    end(pauses_);
  }
}

void NetworkTables::add_queues(const NetworkRecord& record) {
  const std::vector<Time>& times = record.samples().times();
  for (u32 i = 0; i < record.queues().size(); ++i) {
    const LinkEnd& place = record.ports().ends()[i];
    for (const SeriesSet::Point& point : record.queues().of(i)) {
      if (point.sample >= times.size()) continue;
      queues_.add(times[point.sample].ps()).add(place.node).add(place.port).add(point.value);
      end(queues_);
    }
  }
}

void NetworkTables::add_marks(const NetworkRecord& record) {
  for_each_growth(record, record.marks(), [&](u32 link_end, Time at, Duration, u64 marks) {
    const LinkEnd& place = record.ports().ends()[link_end];
    marks_.add(at.ps()).add(place.node).add(place.port).add(marks);
    end(marks_);
  });
}

void NetworkTables::add_loads(const NetworkRecord& record) {
  for_each_growth(record, record.sent(), [&](u32 link_end, Time at, Duration since, u64 bytes) {
    if (since <= Duration()) return;
    const LinkEnd& place = record.ports().ends()[link_end];
    loads_.add(at.ps()).add(place.node).add(place.port).add(bytes);
    loads_.add(static_cast<i64>(static_cast<double>(bytes) * 8 / since.seconds()));
    end(loads_);
  });
}

void NetworkTables::add_waits(const NetworkRecord& record) {
  for_each_growth(record, record.waits(), [&](u32 link_end, Time at, Duration, u64 waited_ps) {
    const LinkEnd& place = record.ports().ends()[link_end];
    waits_.add(at.ps()).add(place.node).add(place.port).add(waited_ps);
    end(waits_);
  });
}

}  // namespace verbena::fabric
