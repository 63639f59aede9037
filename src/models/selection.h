// Selection: the tensors that a fetcher takes, and the part of each: by name, and by tensor
// parallelism.
#pragma once

#include <string>
#include <vector>

#include "transfer/safetensors.h"

namespace verbena::models {

using transfer::Expected;

struct Selection {
  std::vector<std::string> names{};            // patterns; none: all
  std::vector<std::string> rows{}, columns{};  // patterns of those that are split
  u32 part = 0, parts = 1;

  [[nodiscard]] bool is_everything() const { return names.empty() && parts == 1; }
  [[nodiscard]] bool takes(const std::string& tensor) const;
  // Returns the slice by the given patterns, else by the names of Llama's layers.
  [[nodiscard]] transfer::Slice slice_of(const std::string& tensor) const;
};

[[nodiscard]] bool matches(const std::string& pattern, const std::string& name);

}  // namespace verbena::models
