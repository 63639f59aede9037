#include "models/plan.h"

#include <algorithm>
#include <set>

namespace verbena::models {
namespace {

using transfer::Manifest;
using transfer::SafetensorsHeader;
using transfer::SliceLayout;

constexpr u64 kMaxRunsOfUnit = 8192;
constexpr double kHeaderSeconds = 60;

// The first bytes of a file, of which each chunk's hash is checked.
class VerifiedPrefix {
 public:
  VerifiedPrefix(Sources& sources, const Source& source, const Manifest& manifest, u32 file)
      : sources_(sources), source_(source), manifest_(manifest), file_(file) {}

  Expected<std::string> read(u64 bytes) {
    const transfer::ModelFile& file = manifest_.files[file_];
    if (bytes > file.bytes) return tl::unexpected(file.name + ": the file is cut short");
    while (bytes_.size() < bytes)
      if (const auto more = read_chunk(); !more) return tl::unexpected(more.error());
    return std::string(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(bytes));
  }

 private:
  Expected<void> read_chunk() {
    const transfer::ModelFile& file = manifest_.files[file_];
    const u64 chunk = bytes_.size() / manifest_.chunk_bytes;
    const u64 offset = bytes_.size();
    std::vector<u8> part(std::min(manifest_.chunk_bytes, file.bytes - offset));
    const auto region = add_region(sources_.agent(), part.data(), part.size(), VERBENA_LOCAL_WRITE);
    if (!region) return tl::unexpected(region.error());
    Expected<void> result;
    {
      const transfer::Place& place = source_.places[file_];
      const auto transfer = start_read(
          sources_.agent(), {.peer = source_.peer,
                             .local = {{reinterpret_cast<u64>(part.data()), part.size(), *region}},
                             .remote = {{place.address + offset, part.size(), place.region}}});
      result = transfer ? finish(*transfer, kHeaderSeconds)
                        : Expected<void>(tl::unexpected(transfer.error()));
    }
    verbena_agent_deregister(sources_.agent(), *region);
    if (!result) return result;
    if (transfer::blake3(part) != file.hashes[chunk])
      return tl::unexpected(file.name + ": the hash of its header does not match");
    bytes_.insert(bytes_.end(), part.begin(), part.end());
    return {};
  }
  Sources& sources_;
  const Source& source_;
  const Manifest& manifest_;
  u32 file_;
  std::vector<u8> bytes_{};
};

Expected<SafetensorsHeader> read_header(Sources& sources, const Source& source,
                                        const Manifest& manifest, u32 file) {
  VerifiedPrefix prefix(sources, source, manifest, file);
  const transfer::ModelFile& entry = manifest.files[file];
  const auto wrong = [&](const std::string& why) {
    return tl::unexpected(entry.name + ": " + why);
  };
  const auto first = prefix.read(SafetensorsHeader::kPrefixBytes);
  if (!first) return tl::unexpected(first.error());
  const auto bytes = SafetensorsHeader::json_bytes(*first, entry.bytes);
  if (!bytes) return wrong(bytes.error());
  const auto all = prefix.read(SafetensorsHeader::kPrefixBytes + *bytes);
  if (!all) return tl::unexpected(all.error());
  const auto header =
      SafetensorsHeader::parse(all->substr(SafetensorsHeader::kPrefixBytes), entry.bytes);
  if (!header) return wrong(header.error());
  return header;
}

// Units of at most a chunk: parts of one long run, or several short ones.
void add_units(const SliceLayout& layout, u32 file, u64 target_offset, u64 chunk_bytes,
               std::vector<Unit>& units) {
  if (layout.tensor.bytes == 0) return;
  const u64 runs = std::clamp<u64>(chunk_bytes / layout.run, 1, kMaxRunsOfUnit);
  for (u64 row = 0; row < layout.count; row += runs) {
    const u64 count = std::min(runs, layout.count - row);
    const u64 part = count == 1 ? chunk_bytes : layout.run;
    for (u64 at = 0; at < layout.run; at += part) {
      units.push_back({.target_offset = target_offset + row * layout.run + at,
                       .file = file,
                       .offset = layout.offset + row * layout.stride + at,
                       .run = std::min(part, layout.run - at),
                       .stride = layout.stride,
                       .count = count});
    }
  }
}

struct Chosen {
  u32 file = 0;
  SliceLayout layout{};
};

Expected<std::vector<Chosen>> choose(Sources& sources, const Source& source,
                                     const Manifest& manifest, const Selection& selection,
                                     std::map<std::string, std::string>& metadata) {
  std::vector<Chosen> chosen;
  std::set<std::string> names;
  std::vector<bool> is_used(selection.names.size());
  for (u32 file = 0; file < manifest.files.size(); ++file) {
    if (!manifest.files[file].name.ends_with(".safetensors")) continue;
    const auto header = read_header(sources, source, manifest, file);
    if (!header) return tl::unexpected(header.error());
    metadata.insert(header->metadata.begin(), header->metadata.end());
    for (const transfer::Tensor& tensor : header->tensors) {
      for (std::size_t i = 0; i < is_used.size(); ++i)
        if (matches(selection.names[i], tensor.name)) is_used[i] = true;
      if (!selection.takes(tensor.name)) continue;
      if (!names.insert(tensor.name).second)
        return tl::unexpected("tensor " + tensor.name + " is in two files");
      const auto layout = transfer::slice_of(tensor, selection.slice_of(tensor.name));
      if (!layout) return tl::unexpected(manifest.files[file].name + ": " + layout.error());
      chosen.push_back({file, *layout});
    }
  }
  for (std::size_t i = 0; i < is_used.size(); ++i)
    if (!is_used[i]) return tl::unexpected("no tensor is called " + selection.names[i]);
  if (chosen.empty()) return tl::unexpected<std::string>("the model has no tensor");
  return chosen;
}

}  // namespace

Plan plan_everything(const Manifest& manifest, u64 first_chunk) {
  Plan plan;
  u64 chunk = 0;
  for (u32 file = 0; file < manifest.files.size(); ++file) {
    const transfer::ModelFile& entry = manifest.files[file];
    plan.targets.push_back({.name = entry.name, .bytes = entry.bytes});
    for (std::size_t i = 0; i < entry.hashes.size(); ++i, ++chunk) {
      const u64 offset = i * manifest.chunk_bytes;
      plan.units.push_back({.target = file,
                            .target_offset = offset,
                            .file = file,
                            .offset = offset,
                            .run = std::min(manifest.chunk_bytes, entry.bytes - offset),
                            .chunk = chunk,
                            .hash = entry.hashes[i]});
    }
  }
  if (!plan.units.empty())
    std::ranges::rotate(plan.units, plan.units.begin() + static_cast<std::ptrdiff_t>(
                                                             first_chunk % plan.units.size()));
  return plan;
}

Expected<Plan> plan_selection(Sources& sources, const Source& source, const Manifest& manifest,
                              const Selection& selection, const std::string& name) {
  std::map<std::string, std::string> metadata;
  const auto chosen = choose(sources, source, manifest, selection, metadata);
  if (!chosen) return tl::unexpected(chosen.error());
  std::vector<transfer::Tensor> tensors;
  for (const Chosen& each : *chosen) tensors.push_back(each.layout.tensor);
  Plan plan;
  plan.targets.push_back({.name = name, .header = make_safetensors_header(tensors, metadata)});
  for (std::size_t i = 0; i < tensors.size(); ++i)
    add_units((*chosen)[i].layout, (*chosen)[i].file, tensors[i].offset, manifest.chunk_bytes,
              plan.units);
  plan.targets[0].bytes = tensors.back().offset + tensors.back().bytes;
  return plan;
}

}  // namespace verbena::models
