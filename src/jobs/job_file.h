// A job as a user describes it in YAML: a scenario's network (docs/simulator.md), and under
// `collective` what its GPUs do. docs/jobs.md has all keys.
#pragma once

#include <string>
#include <vector>

#include "collectives/operation.h"
#include "fabric/scenario/scenario.h"
#include "jobs/cluster.h"
#include "jobs/collective_run.h"

namespace verbena::jobs {

enum class Method : u8 { kPackets, kFlows, kBoth };

struct Job {
  fabric::Plan plan;
  fabric::NetworkConfig network;
  Cluster cluster;
  RunConfig run;
  std::vector<collectives::Shape> shapes;  // one for each algorithm
  Method method = Method::kPackets;
};

// Has it a key `collective` or `preset`? False also where it is no YAML.
[[nodiscard]] bool is_job(const std::string& text);
// As fabric::read_scenario().
[[nodiscard]] fabric::Parsed<Job> read_job(const std::string& name, const std::string& text,
                                           const std::vector<fabric::Setting>& settings,
                                           const fabric::FileReader& read_file);

}  // namespace verbena::jobs
