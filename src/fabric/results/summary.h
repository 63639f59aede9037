// Summary: a simulation in a few numbers, which terminal, report and comparisons show.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fabric/results/idle_bottleneck.h"
#include "fabric/results/simulation.h"

namespace verbena::fabric {

// SlowdownBucket: the flows of a range of sizes that have ended.
struct SlowdownBucket {
  u64 most_bytes = 0;  // and more than the bucket before
  u64 flows = 0;
  double p50 = 0, p95 = 0, p99 = 0;  // of slowdown: time over time alone
};

struct Summary {
  Outcome outcome = Outcome::kRunning;
  Duration simulated{};  // to the end of the last flow, or of all
  u64 flows = 0, finished = 0;
  u64 bytes = 0;  // of the flows that have ended
  std::optional<Duration> fct_p50, fct_p99, fct_max;
  std::optional<double> slowdown_p50, slowdown_p95, slowdown_p99;
  std::optional<double> fairness;  // Jain's index of the flows' throughput. 1/flows .. 1
  double goodput_bps = 0;          // of all flows together
  u64 failed = 0;                  // flows that were given up
  u64 drops = 0;                   // by switches: no room, not to be marked, or the watchdog
  u64 receiver_drops = 0;          // by slow receivers: no room
  u64 unroutable = 0;              // by switches: no way, as after a link went down
  u64 lost_on_dead_links = 0, corrupted = 0;
  u64 marks = 0, pauses = 0;
  Repairs repairs{};
  u64 hops = 0, events = 0;
  u64 longest_queue = 0;     // bytes
  u32 longest_queue_at = 0;  // link end
  Duration longest_pause{};  // in sum, of one link end; in InfiniBand: without credits
  u32 longest_pause_at = 0;
  bool has_credits = false;  // InfiniBand
  std::optional<IdleBottleneck> bottleneck;
  double busiest = 0;  // utilization of a link end, 0 .. 1
  u32 busiest_at = 0;
  std::vector<SlowdownBucket> by_size;
};

[[nodiscard]] Summary summarize(const Simulation& simulation);
// "leaf0 -> h3"
[[nodiscard]] std::string end_name(const Simulation& simulation, u32 link_end);
// Returns the circle, each port waiting for the next: "s0:1 -> s1:2 -> s0:1, priority 3; ...";
// nullopt if there is none.
[[nodiscard]] std::optional<std::string> deadlock_text(const Simulation& simulation);
// Returns the actions of the PFC watchdog; nullopt if it is off, and there was nothing to do for
// it.
[[nodiscard]] std::optional<std::string> watchdog_text(const Simulation& simulation);
// Lines for a terminal.
[[nodiscard]] std::string text_of(const Summary& summary, const Simulation& simulation);

// One of the numbers, for tables: its name with unit, and the value as text; "-": there is none.
struct SummaryLine {
  std::string name, value;
};
[[nodiscard]] std::vector<SummaryLine> lines_of(const Summary& summary);

}  // namespace verbena::fabric
