#include "cli/sim_progress.h"

#include <algorithm>

#include <fmt/format.h>

#include "fabric/scenario/units.h"

namespace verbena::cli {
namespace {

constexpr double kWithHeaders = 1.02;  // about

}  // namespace

SimProgress::SimProgress(const fabric::Network& network, std::span<const fabric::Flow> flows,
                         Time end)
    : network_(network), flows_(flows.size()), end_(end) {
  for (const fabric::Flow& flow : flows) {
    bytes_ += flow.bytes;
    senders_.push_back(flow.source);
  }
  std::ranges::sort(senders_);
  senders_.erase(std::ranges::unique(senders_).begin(), senders_.end());
}

// Returns the larger of two parts: the part of the simulated time, if it is limited, and the part
// of the data that the hosts have to send.
double SimProgress::part_done(Time now) const {
  u64 sent = 0;
  for (const fabric::NodeIndex host : senders_) sent += network_.sent_bytes(host, 0);
  const double part = static_cast<double>(sent) / (static_cast<double>(bytes_) * kWithHeaders + 1);
  if (end_ == Time::never()) return part;
  return std::max(part, static_cast<double>(now.ps()) / static_cast<double>(end_.ps() + 1));
}

void SimProgress::show(Time now) {
  if (!line_.is_due()) return;
  const double seconds = line_.seconds();
  const double part = std::min(part_done(now), 0.999);
  const u64 events = network_.counters().events;
  line_.show(
      fmt::format("{} simulated, {} of {} flows, {:.2f} M events/s, {:.0f} %, {:.0f} s to go",
                  fabric::duration_text(now - Time()), network_.flows_finished(), flows_,
                  static_cast<double>(events) / seconds / 1e6, part * 100,
                  part > 0 ? seconds * (1 - part) / part : 0));
}

}  // namespace verbena::cli
