// For checks of simulations against closed forms: a scenario or a job of its text alone is run, and
// what the wire carries is counted here, not by the product's own code.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "fabric/results/summary.h"
#include "jobs/job_for_test.h"
#include "jobs/job_results.h"

namespace verbena::physics {

struct Ran {
  fabric::Summary summary;
  std::vector<double> seconds;  // of each flow, from its start to its end
};

// `flows`: what a file named flow.txt has, if the scenario names one.
inline Ran run(const std::string& text, const std::string& flows = "") {
  const auto scenario = fabric::read_scenario(
      "physics.yaml", text, {},
      [&flows](const std::string&) -> fabric::Parsed<std::string> { return flows; });
  EXPECT_TRUE(scenario.has_value()) << (scenario ? "" : scenario.error().message) << '\n' << text;
  if (!scenario) return {};
  fabric::Simulation simulation(*scenario);
  EXPECT_EQ(simulation.mistake(), "");
  while (simulation.advance()) continue;
  Ran ran{.summary = fabric::summarize(simulation), .seconds = {}};
  for (std::size_t i = 0; i < scenario->flows.size(); ++i)
    ran.seconds.push_back((simulation.flows()[i].finished - scenario->flows[i].start).seconds());
  return ran;
}

inline std::vector<jobs::CollectiveResult> run_job(const std::string& text) {
  const auto job = jobs::test::job_of(text);
  EXPECT_TRUE(job.has_value()) << (job ? "" : job.error().message) << '\n' << text;
  if (!job) return {};
  auto results = jobs::run_job(*job, [](const jobs::Progress&) { return false; }).collectives;
  for (const jobs::CollectiveResult& result : results) EXPECT_EQ(result.mistake, "") << text;
  return results;
}
inline double job_seconds(const std::string& text) {
  const auto results = run_job(text);
  return results.empty() ? 0 : results.front().seconds();
}

// A technology as its standards have it: bytes of a packet, and what a switch takes for it.
struct Wire {
  std::string name;
  double payload;          // of a full packet, bytes
  double headers;          // of each, with FCS or CRCs
  double first_headers;    // what the first has besides
  double acknowledgement;  // bytes
  double gap;              // preamble and gap between frames
  double switch_latency;   // seconds
  bool cuts_through;
  std::string settings;  // in YAML: no congestion control where the link is not shared

  [[nodiscard]] double packets(double bytes) const {
    return std::max(1.0, std::ceil(bytes / payload));
  }
  // All packets of a flow, as bytes' times on the wire.
  [[nodiscard]] double bytes(double flow) const {
    return flow + packets(flow) * (headers + gap) + first_headers;
  }
  [[nodiscard]] double full_packet() const { return payload + headers + gap; }
};

// Ethernet 14 + 4, IPv4 20, UDP 8, BTH 12, ICRC 4 = 62, RETH 16, AETH 4; preamble 8 and gap 12.
inline Wire rocev2() {
  return {"rocev2", 4096,  62,
          16,       66,    20,
          425e-9,   false, "technology: rocev2\nhosts: {congestion_control: off}\n"};
}
// LRH 8, BTH 12, ICRC 4, VCRC 2 = 26.
inline Wire infiniband() {
  return {"infiniband", 4096, 26,
          16,           30,   0,
          130e-9,       true, "technology: infiniband\nhosts: {congestion_control: off}\n"};
}
// Ethernet 18, IPv4 20, TCP 20 and 12 of timestamps = 70.
inline Wire tcp() { return {"tcp", 8948, 70, 0, 70, 20, 425e-9, false, "technology: tcp\n"}; }
// MPA 2 + 4 of CRC, DDP and RDMAP 14 = 20 of each segment.
inline Wire iwarp() { return {"iwarp", 8928, 90, 0, 70, 20, 425e-9, false, "technology: iwarp\n"}; }
inline std::vector<Wire> all_wires() { return {rocev2(), infiniband(), tcp(), iwarp()}; }

constexpr double kTolerance = 0.02;

inline void expect_close(double measured, double closed_form, const std::string& what,
                         double tolerance = kTolerance) {
  EXPECT_NEAR(measured / closed_form, 1, tolerance)
      << what << ": " << measured << " instead of " << closed_form;
}

}  // namespace verbena::physics
