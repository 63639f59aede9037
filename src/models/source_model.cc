#include "models/source_model.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>

#include "models/weight_index.h"
#include "transfer/safetensors.h"

namespace verbena::models {
namespace {

namespace fs = std::filesystem;
using transfer::Hash;
using transfer::Manifest;

Expected<transfer::SafetensorsHeader> read_header(const MappedFile& file, const std::string& name) {
  const auto wrong = [&](const std::string& why) { return tl::unexpected(name + ": " + why); };
  std::string prefix(transfer::SafetensorsHeader::kPrefixBytes, '\0');
  if (file.bytes() < prefix.size() ||
      !file.read_at(0, {reinterpret_cast<u8*>(prefix.data()), prefix.size()}))
    prefix.clear();
  const auto bytes = transfer::SafetensorsHeader::json_bytes(prefix, file.bytes());
  if (!bytes) return wrong(bytes.error());
  std::string json(*bytes, '\0');
  if (!file.read_at(prefix.size(), {reinterpret_cast<u8*>(json.data()), json.size()}))
    return wrong("it cannot be read");
  auto header = transfer::SafetensorsHeader::parse(json, file.bytes());
  if (!header) return wrong(header.error());
  return *std::move(header);
}

std::string text_of(const MappedFile& file) {
  std::string text(file.bytes(), '\0');
  if (!file.read_at(0, {reinterpret_cast<u8*>(text.data()), text.size()})) text.clear();
  return text;
}

// Adds a folder's entry to the names. Fails on one that cannot be examined, as a link to nothing.
Expected<void> add_name(fs::recursive_directory_iterator& entry, const fs::path& folder,
                        std::vector<std::string>& names) {
  const std::string name = entry->path().lexically_relative(folder).string();
  const std::string last = entry->path().filename().string();
  std::error_code error;
  const fs::file_status status = entry->status(error);
  if (last.front() == '.') {
    if (fs::is_directory(status)) entry.disable_recursion_pending();
    return {};
  }
  if (status.type() == fs::file_type::not_found)
    return tl::unexpected(name + ": a link to a file that is not there");
  if (error) return tl::unexpected(name + ": " + error.message());
  if (!fs::is_regular_file(status) || last.ends_with(".part")) return {};
  if (!transfer::is_safe_name(name)) return tl::unexpected(name + ": a name that is not served");
  names.push_back(name);
  if (names.size() > Manifest::kMaxFiles)
    return tl::unexpected<std::string>("more than 65,536 files");
  return {};
}

Expected<std::vector<std::string>> names_below(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::path reached = folder;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;) {
    if (const auto added = add_name(entry, folder, names); !added)
      return tl::unexpected(added.error());
    reached = entry->path();
    entry.increment(error);
  }
  if (error) return tl::unexpected(reached.string() + ": " + error.message());
  std::ranges::sort(names);
  return names;
}

// Several threads hash the chunks of a file. Returns false if it cannot be read.
bool hash_file(const MappedFile& file, u64 chunk_bytes, std::vector<Hash>& hashes,
               const std::function<void(u64)>& on_hashed) {
  std::atomic<u64> next = 0;
  std::atomic<bool> is_good = true;
  std::mutex lock;
  const auto work = [&] {
    std::vector<u8> buffer(std::min(chunk_bytes, file.bytes()));
    for (u64 chunk = next++; chunk < hashes.size() && is_good; chunk = next++) {
      const u64 offset = chunk * chunk_bytes;
      const std::span<u8> part(buffer.data(), std::min(chunk_bytes, file.bytes() - offset));
      if (!file.read_at(offset, part)) is_good = false;
      hashes[chunk] = transfer::blake3(part);
      const std::lock_guard<std::mutex> guard(lock);
      on_hashed(part.size());
    }
  };
  const u32 count = static_cast<u32>(
      std::min<u64>(std::clamp(std::thread::hardware_concurrency(), 1u, 16u), hashes.size()));
  std::vector<std::thread> threads;
  for (u32 i = 0; i < count; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  return is_good;
}

// The time by the clock of file systems.
u64 file_clock_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<u64>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

fs::path folder_of(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error) ? fs::path(path) : fs::path(path).parent_path();
}

// Enters the file into the model, with the cache's hashes or new ones.
Expected<void> add_file(SourceModel& model, const std::string& name, MappedFile file,
                        HashCache& cache, const std::function<void(u64)>& on_hashed) {
  const u64 chunk_bytes = model.manifest.chunk_bytes;
  transfer::ModelFile entry{.name = name, .bytes = file.bytes()};
  if (const auto* const kept = cache.find(name, file.identity(), chunk_bytes)) {
    entry.hashes = *kept;
    model.kept_chunks += kept->size();
  } else {
    entry.hashes.resize(model.manifest.chunks_of(entry));
    const u64 began_ns = file_clock_ns();
    if (!hash_file(file, chunk_bytes, entry.hashes, on_hashed) || file.has_changed())
      return tl::unexpected(name + ": it changed while it was read");
    cache.keep(name, file.identity(), chunk_bytes, entry.hashes, began_ns);
  }
  model.manifest.files.push_back(std::move(entry));
  model.files.push_back(std::move(file));
  return {};
}

// A model that lacks files may be served on purpose, so a wrong index is no error.
void add_warnings(SourceModel& model, const TensorNames& tensors) {
  for (std::size_t i = 0; i < model.files.size(); ++i) {
    const std::string& name = model.manifest.files[i].name;
    if (!is_weight_index(name)) continue;
    if (std::string fault = fault_of_index(name, text_of(model.files[i]), tensors); !fault.empty())
      model.warnings.push_back(std::move(fault));
  }
}

}  // namespace

std::string hash_cache_path(const std::string& path) {
  return (folder_of(path) / HashCache::kFileName).string();
}

Expected<SourceModel> open_model(const std::string& path, u64 chunk_bytes, HashCache& cache,
                                 const std::function<void(u64)>& on_hashed) {
  SourceModel model;
  model.manifest.chunk_bytes = chunk_bytes;
  std::error_code error;
  const fs::path folder = folder_of(path);
  std::vector<std::string> names = {fs::path(path).filename().string()};
  if (fs::is_directory(path, error)) {
    auto found = names_below(folder);
    if (!found) return tl::unexpected(found.error());
    names = std::move(*found);
    cache.retain(names);
  }
  if (names.empty()) return tl::unexpected(path + ": there is no file in it");
  TensorNames tensors;
  for (const std::string& name : names) {
    auto file = MappedFile::open_source((folder / name).string());
    if (!file) return tl::unexpected(file.error());
    if (name.ends_with(".safetensors")) {
      const auto header = read_header(*file, name);
      if (!header) return tl::unexpected(header.error());
      auto& known = tensors[name];
      for (const transfer::Tensor& tensor : header->tensors) known.insert(tensor.name);
    }
    if (const auto added = add_file(model, name, std::move(*file), cache, on_hashed); !added)
      return tl::unexpected(added.error());
  }
  add_warnings(model, tensors);
  return model;
}

}  // namespace verbena::models
