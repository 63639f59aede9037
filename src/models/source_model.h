// The files of a model that `model serve` gives, and the hashes of their chunks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/hash_cache.h"
#include "models/mapped_file.h"
#include "transfer/manifest.h"

namespace verbena::models {

struct SourceModel {
  transfer::Manifest manifest{};
  std::vector<MappedFile> files{};
  u64 kept_chunks = 0;                  // whose hashes the cache had
  std::vector<std::string> warnings{};  // a line each, for the user
};
// Opens the files of a folder, or one file. Refuses safetensors files with a wrong header. Hashes
// the files that `cache` does not know, and enters them there. `on_hashed` gets bytes.
[[nodiscard]] Expected<SourceModel> open_model(const std::string& path, u64 chunk_bytes,
                                               HashCache& cache,
                                               const std::function<void(u64)>& on_hashed);

// Returns the path of the cache of the model at `path`: in the model's folder.
[[nodiscard]] std::string hash_cache_path(const std::string& path);

}  // namespace verbena::models
