// The settings of a scenario of HPCC's ns-3 model (config.txt): `KEY value` lines.
// https://github.com/alibaba-edu/High-Precision-Congestion-Control; Li et al., SIGCOMM 2019.
#pragma once

#include <map>

#include "fabric/hpcc_ns3/words.h"
#include "fabric/link.h"

namespace verbena::fabric::hpcc_ns3 {

// Defaults are the model's own.
struct Config {
  std::string topology_file = "topology.txt", flow_file = "flow.txt";
  Duration stop = sec(3);
  bool ecn = true;             // ENABLE_QCN
  u32 packet_payload = 1000;   // octets
  u32 congestion_control = 1;  // CC_MODE; 1: DCQCN
  double alpha_interval_us = 55, decrease_interval_us = 4, increase_interval_us = 1500;
  bool clamp_target = false;
  double gain = 1.0 / 16;
  u32 fast_recovery = 5;
  Rate additive_increase = mbps(5), hyper_increase = mbps(50), min_rate = mbps(100);
  double error_rate = 0;  // of each link, beside its own
  bool has_window = false, variable_window = false;
  bool acknowledgements_first = false;  // ACK_HIGH_PRIO
  // By the rate of a port in bit/s: thresholds in units of 1000 octets, and a probability.
  std::map<u64, u32> k_min, k_max;
  std::map<u64, double> p_max;
  u32 buffer_mib = 0;
};

// Keys that are not known, or change nothing in what is modelled, are passed over. What is known
// and not modelled (another CC_MODE, LINK_DOWN) is an error.
[[nodiscard]] Parsed<Config> parse_config(std::string_view name, std::string_view text);

// "100Gbps", "25Gb/s", "1000Mb/s", "10Mbps"
[[nodiscard]] std::optional<Rate> parse_rate(std::string_view word);
// "1000ns", "1us", "0.001ms", "0.000001s"; a bare number is seconds.
[[nodiscard]] std::optional<Duration> parse_delay(std::string_view word);

}  // namespace verbena::fabric::hpcc_ns3
