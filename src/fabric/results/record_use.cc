#include "fabric/results/record_use.h"

#include "fabric/pfc.h"

namespace verbena::fabric {
namespace {

void note_pauses(const NetworkRecord& record, const std::vector<Rate>& rates, Time end,
                 LinkUse& use) {
  std::vector<PauseState> states(rates.size());
  const auto note = [&use](u32 direction, const std::optional<TimeSpan>& span) {
    if (span) use.note_held(direction, span->begin, span->end, span->length());
  };
  for (const NetworkRecord::Pause& pause : record.pauses())
    note(pause.link_end,
         states[pause.link_end].on_frame(
             pause.priority, pause_time(pause.quanta, rates[pause.link_end]), pause.at));
  for (u32 direction = 0; direction < states.size(); ++direction)
    note(direction, states[direction].finish(end));
}

void note_queues(const NetworkRecord& record, LinkUse& use) {
  const std::vector<Time>& times = record.samples().times();
  for (u32 direction = 0; direction < record.queues().size(); ++direction)
    for (const SeriesSet::Point& point : record.queues().of(direction))
      if (point.sample < times.size()) use.note_queue(direction, times[point.sample], point.value);
}

}  // namespace

LinkUse use_of_links(const NetworkRecord& record, const Topology& topology, Time end) {
  std::vector<Rate> rates;
  for (const LinkEnd& place : record.ports().ends())
    rates.push_back(topology.links[place.link].config.rate);
  LinkUse use(rates, end - Time(), record.samples().interval());
  note_queues(record, use);
  for_each_growth(record, record.sent(), [&](u32 direction, Time at, Duration since, u64 bytes) {
    use.note_sent(direction, at, since, bytes);
  });
  for_each_growth(record, record.marks(), [&](u32 direction, Time at, Duration, u64 marks) {
    use.note_marks(direction, at, marks);
  });
  for_each_growth(record, record.waits(), [&](u32 direction, Time at, Duration since, u64 waited) {
    use.note_held(direction, at - since, at, ps(static_cast<i64>(waited)));
  });
  note_pauses(record, rates, end, use);
  return use;
}

}  // namespace verbena::fabric
