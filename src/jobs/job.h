// A job as a user describes it in YAML: a scenario's network (docs/simulator.md), and under
// `collective`, `training`, `inference`, `serving`, `loading` or `chakra` what its GPUs do.
// docs/jobs.md has all keys. job_file.h reads it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/operation.h"
#include "fabric/scenario/scenario.h"
#include "jobs/cluster.h"
#include "jobs/collective_run.h"
#include "jobs/loading/loading_config.h"
#include "jobs/serving/serving_config.h"
#include "jobs/steps/inference_step.h"
#include "jobs/steps/training_step.h"
#include "jobs/storage/storage_config.h"

namespace verbena::jobs {

enum class Method : u8 { kPackets, kFlows, kBoth };
// The results that a run packet by packet keeps: its numbers, or all that results.sqlite has.
enum class Keep : u8 { kNumbers, kAll };

// A step as execution traces have it.
struct ImportedJob {
  GPU gpu;  // for what they give no times of
  u64 nodes = 0;
  ProgramParts parts;
};

struct Job {
  std::string preset;  // its name; "": none
  fabric::Plan plan;
  fabric::NetworkConfig network;
  Cluster cluster;
  RunConfig run;
  std::vector<collectives::Shape> shapes;  // one for each algorithm
  bool has_usual_channels = false;         // the file says none
  Method method = Method::kPackets;
  // A step of the GPUs is one of these, and then there are no shapes.
  std::optional<TrainingConfig> training;
  std::optional<InferenceConfig> inference;
  std::optional<ImportedJob> imported;
  std::optional<ServingConfig> serving;  // instead of all of these
  std::optional<LoadingConfig> loading;  // likewise
  Cutting cutting;                       // of a step's operations
  std::optional<StorageConfig> storage;  // beside it
  // Paths of what was of other technologies; only where the technology was set besides the file.
  std::vector<std::string> left_out;
  bool says_host_path = false;  // `hosts: {path: none}` too
  Keep keep = Keep::kNumbers;
  std::vector<fabric::Expectation> expectations{};  // `assert`
  std::string text;                                 // as it was read, with all settings

  [[nodiscard]] bool has_step() const { return training || inference || imported; }
  [[nodiscard]] const GPU* gpu() const {  // does the step; nullptr if none
    if (training) return &training->gpu;
    if (inference) return &inference->gpu;
    return imported ? &imported->gpu : nullptr;
  }
};

}  // namespace verbena::jobs
