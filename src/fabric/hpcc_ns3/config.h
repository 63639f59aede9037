// The settings of a scenario of HPCC's ns-3 model (config.txt): `KEY value` lines.
// https://github.com/alibaba-edu/High-Precision-Congestion-Control; Li et al., SIGCOMM 2019.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fabric/hpcc_ns3/words.h"
#include "fabric/link.h"

namespace verbena::fabric::hpcc_ns3 {

enum class Control : u8 {  // CC_MODE
  kNone = 0,
  kDCQCN = 1,
  kHPCC = 3,
  kTIMELY = 7,
  kDCTCP = 8,
};

// LINK_DOWN
struct LinkDown {
  Duration after;  // the second second of the simulation
  u32 a = 0, b = 0;
};

// Defaults are the model's own.
struct Config {
  std::string topology_file = "topology.txt", flow_file = "flow.txt";
  Duration stop = ns(3'010'000'000);
  bool ecn = true;                              // ENABLE_QCN
  u32 packet_payload = 1000, ack_interval = 1;  // bytes
  Control control = Control::kDCQCN;
  double alpha_interval_us = 55, decrease_interval_us = 4, increase_interval_us = 1500;
  bool clamp_target = false;
  double gain = 1.0 / 16;
  u32 fast_recovery = 5;
  Rate additive_increase = mbps(5), hyper_increase = mbps(50), min_rate = mbps(100);
  Rate dctcp_increase = gbps(1);  // DCTCP_RATE_AI
  double error_rate = 0;          // of each link that has none of its own
  // The window holds the bytes in flight on the network's longest path; it follows the rate if it
  // is variable.
  bool has_window = true, variable_window = false;
  bool global_window = true;            // GLOBAL_T
  bool paced = true;                    // RATE_BOUND
  bool acknowledgements_first = false;  // ACK_HIGH_PRIO
  // HPCC: FAST_REACT, MULTI_RATE, U_TARGET, MI_THRESH, INT_MULTI
  bool reacts_to_each_ack = true, rate_for_each_hop = true;
  double target_utilization = 0.95;
  u32 max_stage = 5, telemetry_unit = 1;
  bool samples_feedback = false, back_to_zero = false;  // read, and told of: differences()
  std::optional<LinkDown> link_down;
  // Thresholds by the rate of a port in bit/s, in units of 1000 bytes, and a probability.
  std::map<u64, u32> k_min, k_max;
  std::map<u64, double> p_max;
  u32 buffer_mib = 16;
};

// All keys of that model are known. Ignored are keys that have no effect there either
// (USE_DYNAMIC_PFC_THRESHOLD, PAUSE_TIME, DATA_RATE, LINK_DELAY, and L2_CHUNK_SIZE with
// L2_BACK_TO_ZERO 0), keys that only name or request other output (TRACE_*, ENABLE_TRACE,
// QLEN_MON_*, *_OUTPUT_FILE), and words that are no key, as in that model: it knows no lines, and
// no comments. A feature of that model that is missing here is an error: HPCC-PINT (CC_MODE 10).
[[nodiscard]] Parsed<Config> parse_config(std::string_view name, std::string_view text);
// Returns the differences between the run and the settings, a sentence each.
[[nodiscard]] std::vector<std::string> differences(const Config& config);

// "100Gbps", "25Gb/s", "1000Mb/s", "10Mbps"
[[nodiscard]] std::optional<Rate> parse_rate(std::string_view word);
// "1000ns", "1us", "0.001ms", "0.000001s"; a bare number is seconds. Whole nanoseconds, cut off.
[[nodiscard]] std::optional<Duration> parse_delay(std::string_view word);

}  // namespace verbena::fabric::hpcc_ns3
