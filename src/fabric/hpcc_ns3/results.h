// The results of a scenario in the formats of HPCC's ns-3 model: fct.txt, pfc.txt, and the lines
// STAT and MAXQ.
#pragma once

#include <string>
#include <vector>

#include "fabric/hpcc_ns3/paths.h"
#include "fabric/hpcc_ns3/scenario.h"

namespace verbena::fabric::hpcc_ns3 {

class Results final : public Trace {
 public:
  // Both outlive it.
  Results(const Scenario& scenario, const Network& network)
      : scenario_(scenario),
        network_(network),
        paths_(scenario.topology, network.routes(), scenario.config.packet_payload) {}

  void on_flow_finished(u32 flow, Time now) override { finished_.push_back({flow, now}); }
  void on_pause_received(NodeIndex node, u32 port, u32 priority, u32 quanta, Time now) override;

  // When the last flow ended; 0: none has.
  [[nodiscard]] Time last_end() const { return finished_.empty() ? Time() : finished_.back().at; }
  // `sip dip sport dport bytes start_ns fct_ns standalone_ns`, in the order in which they ended.
  [[nodiscard]] std::string fct() const;
  // `time_ns node is_switch port paused`
  [[nodiscard]] const std::string& pfc() const { return pfc_; }

  struct Cost {
    double setup_seconds = 0, run_seconds = 0, peak_mebibytes = 0;
  };
  // STAT, then a MAXQ for each port of a switch whose queue was ever longer than kShownQueue
  // bytes; DEADLOCK with a circle of `node:port` if there was one, FAILED if flows were given up.
  [[nodiscard]] std::string summary(const Cost& cost) const;

 private:
  static constexpr u32 kShownQueue = 20'000;
  struct Finished {
    u32 flow;
    Time at;
  };

  const Scenario& scenario_;
  const Network& network_;
  const Paths paths_;
  std::vector<Finished> finished_;
  std::string pfc_;
};

// How long the flow would take alone, as that model estimates it: two delays of each link of its
// path, a payload over each, and all bytes with headers over the slowest.
[[nodiscard]] Duration standalone_time(const Flow& flow, const Config& config, const Path& path);

}  // namespace verbena::fabric::hpcc_ns3
