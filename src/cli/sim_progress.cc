#include "cli/sim_progress.h"

#include <fmt/format.h>

#include "fabric/scenario/units.h"

namespace verbena::cli {
namespace {

constexpr double kWithHeaders = 1.02;  // about

}  // namespace

SimProgress::SimProgress(const fabric::Simulation& simulation) : simulation_(simulation) {
  for (const fabric::Flow& flow : simulation.scenario().flows) octets_ += flow.octets;
}

// Of the time, where it is bounded, and of what hosts have to send, whichever is more.
double SimProgress::part_done() const {
  const fabric::Scenario& scenario = simulation_.scenario();
  u64 sent = 0;
  for (const fabric::NodeIndex host : scenario.plan.hosts)
    sent += simulation_.network().sent_octets(host, 0);
  const double part = static_cast<double>(sent) / (static_cast<double>(octets_) * kWithHeaders + 1);
  if (scenario.end == Time::never()) return part;
  return std::max(part, static_cast<double>(simulation_.now().ps()) /
                            static_cast<double>(scenario.end.ps() + 1));
}

void SimProgress::show() {
  if (!line_.is_due()) return;
  const double seconds = line_.seconds();
  const double part = std::min(part_done(), 0.999);
  const u64 events = simulation_.network().counters().events;
  line_.show(fmt::format(
      "{} simulated, {} of {} flows, {:.2f} M events/s, {:.0f} %, {:.0f} s to go",
      fabric::duration_text(simulation_.now() - Time()), simulation_.network().flows_finished(),
      simulation_.flows().size(), static_cast<double>(events) / seconds / 1e6, part * 100,
      part > 0 ? seconds * (1 - part) / part : 0));
}

}  // namespace verbena::cli
