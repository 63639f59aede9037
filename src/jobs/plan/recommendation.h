// Recommendation: what to buy according to the measurements, why, and what would change it. The
// choice has the least cost of work (comparison.h) among technologies whose parts the catalogue
// has. The text calls others within kTie of it as good. Every sentence is a number of a run or
// follows from such numbers by the arithmetic that it states.
#pragma once

#include <string>
#include <vector>

#include "jobs/plan/comparison.h"

namespace verbena::jobs {

inline constexpr double kTie = 0.01;

struct Recommendation {
  const Candidate* best = nullptr;  // nullptr if nothing ran
  std::vector<std::string> reasons, changes;
};

// `candidates`: of the job itself. They outlive it.
[[nodiscard]] Recommendation recommend(const std::vector<Candidate>& candidates);

// Variant: the settings of a run that shows what would change the recommendation, for each
// technology of `candidates` on the topology of `best`: other sizes or faster GPUs, links that lose
// frames, more cores for TCP.
struct Variant {
  std::string name;
  std::vector<fabric::Setting> settings;
  bool of_tcp_only = false;
};
[[nodiscard]] std::vector<Variant> variants_of(const std::vector<Candidate>& candidates,
                                               const Candidate& best);
// Returns the lessons of the runs of these variants.
[[nodiscard]] std::vector<std::string> lessons_of(const std::vector<Candidate>& candidates,
                                                  const std::vector<Candidate>& varied,
                                                  const Candidate& best);

}  // namespace verbena::jobs
