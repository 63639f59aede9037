#include "models/selection.h"

#include <fnmatch.h>

#include <algorithm>

namespace verbena::models {
namespace {

// Megatron's scheme: the first linear layer of a block is split by its outputs, the second by its
// inputs. PyTorch stores (outputs, inputs).
constexpr const char* kSplitByRows[] = {
    "*.q_proj.weight",      "*.k_proj.weight", "*.v_proj.weight", "*.gate_proj.weight",
    "*.up_proj.weight",     "*.q_proj.bias",   "*.k_proj.bias",   "*.v_proj.bias",
    "*embed_tokens.weight", "lm_head.weight"};
constexpr const char* kSplitByColumns[] = {"*.o_proj.weight", "*.down_proj.weight"};

bool is_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns,
                             [&](const std::string& pattern) { return matches(pattern, name); });
}

}  // namespace

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

bool Selection::takes(const std::string& tensor) const {
  return names.empty() || is_any(names, tensor);
}

transfer::Slice Selection::slice_of(const std::string& tensor) const {
  using Axis = transfer::Slice::Axis;
  const auto slice = [&](Axis axis) {
    return transfer::Slice{.axis = axis, .part = part, .parts = parts};
  };
  if (is_any(rows, tensor)) return slice(Axis::kRows);
  if (is_any(columns, tensor)) return slice(Axis::kColumns);
  for (const char* const pattern : kSplitByRows)
    if (matches(pattern, tensor)) return slice(Axis::kRows);
  for (const char* const pattern : kSplitByColumns)
    if (matches(pattern, tensor)) return slice(Axis::kColumns);
  return {};
}

}  // namespace verbena::models
