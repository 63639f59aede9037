// Plan: the data that a fetch reads: targets, and units of at most a chunk that make them up.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/selection.h"
#include "models/source.h"
#include "transfer/manifest.h"

namespace verbena::models {

// `count` runs of the source's file, one behind the other in the target.
struct Unit {
  u32 target = 0;
  u64 target_offset = 0;
  u32 file = 0;  // of the manifest
  u64 offset = 0, run = 0, stride = 0, count = 1;
  std::optional<u64> chunk{};            // it is that chunk of the model, whole
  std::optional<transfer::Hash> hash{};  // else its source is asked
  [[nodiscard]] u64 bytes() const { return run * count; }
};

struct PlannedTarget {
  std::string name{};
  u64 bytes = 0;
  std::string header{};  // its first bytes, which no source has
};

struct Plan {
  std::vector<PlannedTarget> targets{};
  std::vector<Unit> units{};
};

// Returns a plan for all files, chunk by chunk, beginning at `first_chunk`.
[[nodiscard]] Plan plan_everything(const transfer::Manifest& manifest, u64 first_chunk);
// Returns a plan for the selected tensors and slices, as one safetensors file. Reads the headers of
// the model's files.
[[nodiscard]] Expected<Plan> plan_selection(Sources& sources, const Source& source,
                                            const transfer::Manifest& manifest,
                                            const Selection& selection, const std::string& name);

}  // namespace verbena::models
