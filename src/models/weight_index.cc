#include "models/weight_index.h"

#include "transfer/json.h"

namespace verbena::models {

using transfer::JSON;

bool is_weight_index(std::string_view file) { return file.ends_with(".safetensors.index.json"); }

// Files that an index names lie in its own folder.
std::string fault_of_index(const std::string& name, std::string_view json,
                           const TensorNames& files) {
  const auto document = JSON::parse(json);
  if (!document) return name + ": " + document.error();
  const JSON* const places = document->find("weight_map");
  if (places == nullptr || !places->is(JSON::Type::kObject)) return name + ": it has no weight_map";
  const std::string folder = name.substr(0, name.rfind('/') + 1);
  for (const auto& [tensor, place] : places->members) {
    if (!place.is(JSON::Type::kString)) return name + ": tensor " + tensor + " has no file";
    const auto file = files.find(folder + place.text);
    if (file == files.end())
      return name + ": it names " + place.text + ", which is no safetensors file here";
    if (!file->second.contains(tensor))
      return name + ": tensor " + tensor + " is not in " + place.text;
  }
  return "";
}

}  // namespace verbena::models
