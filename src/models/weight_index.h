// The index of a model of several files (model.safetensors.index.json, as Hugging Face's tools
// write it): it names the file of each tensor. Programs that load the model believe it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace verbena::models {

// The names of the tensors in each file.
using TensorNames = std::map<std::string, std::set<std::string>>;

[[nodiscard]] bool is_weight_index(std::string_view file);
// Returns one line about the first thing in the index `name` that does not fit the files: it is no
// index, or it names a file or a tensor that is not there. Returns "" if all fits.
[[nodiscard]] std::string fault_of_index(const std::string& name, std::string_view json,
                                         const TensorNames& files);

}  // namespace verbena::models
