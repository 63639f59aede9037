// Simulation: one scenario being run, and its results: when flows ended, pauses, and samples of
// queues, links, marks and rates over time. It has no clock: advance() runs a short stretch of
// simulated time, and the caller may read a clock between two calls. The same scenario gives the
// same results, bit for bit.
#pragma once

#include <optional>
#include <vector>

#include "fabric/results/frame_capture.h"
#include "fabric/results/network_record.h"
#include "fabric/scenario/scenario.h"

namespace verbena::fabric {

enum class Outcome : u8 {
  kRunning,
  kComplete,  // all flows have ended, or were given up
  kTimeIsUp,  // the scenario's duration is over
  kDeadlock,  // queues wait for each other in a circle (Network::deadlock()), and no watchdog is on
  kStalled,   // nothing has moved for kPatience, and flows wait
};
[[nodiscard]] std::string_view name_of(Outcome outcome);

class Simulation final : public Trace {
 public:
  static constexpr Duration kPatience = sec(5);
  static constexpr u32 kRatedFlows = 64;  // the first so many are asked for their rate

  // `scenario` outlives it.
  explicit Simulation(const Scenario& scenario);
  // Returns "" if there is no error. Otherwise advance() must not be called.
  [[nodiscard]] const std::string& mistake() const { return mistake_; }

  // Keeps the frames of these links, from now on.
  void capture(const std::vector<u32>& links);
  // Notes the ways of flows, for a report: before the first advance().
  void log_paths() { network_.log_paths(); }
  // Runs until the next sample, or the end. Returns false when the simulation is over.
  bool advance();

  struct FlowResult {
    Time finished = Time::never();  // never: it has not
    Duration alone{};
  };
  [[nodiscard]] const std::optional<FrameCapture>& captured() const { return capture_; }
  [[nodiscard]] Outcome outcome() const { return outcome_; }
  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  [[nodiscard]] const Network& network() const { return network_; }
  [[nodiscard]] const NetworkRecord& record() const { return record_; }
  [[nodiscard]] const PortMap& ports() const { return record_.ports(); }
  [[nodiscard]] const std::vector<FlowResult>& flows() const { return flows_; }
  // The end of the measured time: of the last flow, when all have ended; else now().
  [[nodiscard]] Time measured_until() const;
  // Returns the totals of each end of a link in the measured time.
  [[nodiscard]] std::vector<PortTotal> totals() const;
  // Returns how long each end had to wait: paused, or with something to send and no credits.
  [[nodiscard]] std::vector<Duration> held_times() const;

 private:
  void on_flow_finished(u32 flow, Time now) override { flows_[flow].finished = now; }
  void on_pause_received(NodeIndex node, u32 port, u32 priority, u32 quanta, Time now) override {
    record_.on_pause_received(node, port, priority, quanta, now);
  }
  bool run_network(Time until);
  bool is_stalled();
  void finish(Outcome outcome);

  const Scenario& scenario_;
  Network network_;
  NetworkRecord record_;
  std::string mistake_;
  Outcome outcome_ = Outcome::kRunning;
  Time now_{};
  Time moved_{};  // when data was last seen to move
  u64 moved_frames_ = 0;
  std::vector<FlowResult> flows_;
  std::vector<PortTotal> totals_;  // empty as long as it runs
  std::optional<FrameCapture> capture_;
};

}  // namespace verbena::fabric
