// A whole plan: as text for people, and as tables for who wants to trace a number (results.sqlite).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jobs/plan/comparison.h"
#include "jobs/plan/proof.h"
#include "jobs/plan/recommendation.h"
#include "jobs/plan/remedies.h"
#include "jobs/plan/tuning.h"

namespace verbena::jobs {

// Links of one rate and length, for RoCEv2.
struct TunedLinks {
  TuningRequest request;
  Tuning tuning;
  bool of_hosts = false;  // there are hosts at them
};
// Returns the tuning of a topology's links, those of hosts first. If `cable_metres` is 0, the
// links' delays give the length.
[[nodiscard]] std::vector<TunedLinks> tuned_links(const Job& job, u64 switch_buffer_bytes,
                                                  u32 cable_metres);
// Returns the number of ports of the switch with the most ports.
[[nodiscard]] u32 ports_of_largest_switch(const fabric::Topology& topology);

struct PlanResults {
  std::string file;
  bool is_interrupted = false;        // before all runs had ended
  std::vector<Candidate> candidates;  // of the job itself
  std::vector<Tried> tried;           // remedies of each
  std::vector<Candidate> best;        // each with its best remedy
  std::vector<Candidate> varied;
  Recommendation recommendation;     // of `best`
  std::vector<std::string> lessons;  // of `varied`
  std::vector<TunedLinks> tuned;     // none: RoCEv2 is not among the technologies
  std::optional<Proof> proof;        // for the first of them
  u32 proof_ports = 0;
};

[[nodiscard]] std::string text_of(const PlanResults& results);
// Returns the error, or "" if there is none.
[[nodiscard]] std::string write_database(const std::string& path, const PlanResults& results);

// Files of settings for switches and NICs.
struct PlanFile {
  std::string name, text;
};
[[nodiscard]] std::vector<PlanFile> settings_files(const PlanResults& results);

}  // namespace verbena::jobs
