#include "transfer/manifest.h"

#include <algorithm>
#include <set>

#include "transfer/fields.h"

namespace verbena::transfer {
namespace {

constexpr u32 kManifestMagic = 0x314d4256;  // "VBM1"

tl::unexpected<std::string> not_manifest(const char* why) {
  return tl::unexpected(std::string("the manifest is wrong: ") + why);
}

}  // namespace

u64 Manifest::bytes() const {
  u64 total = 0;
  for (const ModelFile& file : files) total += file.bytes;
  return total;
}

u64 Manifest::chunks() const {
  u64 total = 0;
  for (const ModelFile& file : files) total += chunks_of(file);
  return total;
}

std::string Manifest::encode() const {
  FieldWriter writer;
  writer.put(kManifestMagic).put(chunk_bytes).put(static_cast<u32>(files.size()));
  std::string bytes = writer.bytes();
  for (const ModelFile& file : files) {
    bytes += FieldWriter().put(file.name).put(file.bytes).bytes();
    for (const Hash& hash : file.hashes)
      bytes.append(reinterpret_cast<const char*>(hash.data()), hash.size());
  }
  return bytes;
}

Expected<Manifest> Manifest::decode(std::string_view bytes) {
  FieldReader reader(bytes);
  if (reader.get<u32>() != kManifestMagic) return not_manifest("it begins otherwise");
  Manifest manifest;
  manifest.chunk_bytes = reader.get<u64>();
  const u32 files = reader.get<u32>();
  if (!reader.is_good() || manifest.chunk_bytes < kMinChunkBytes ||
      manifest.chunk_bytes > kMaxChunkBytes || files > kMaxFiles)
    return not_manifest("a number is not possible");
  std::set<std::string> names;
  for (u32 i = 0; i < files; ++i) {
    ModelFile file;
    file.name = reader.text();
    file.bytes = reader.get<u64>();
    if (!reader.is_good()) return not_manifest("it is cut short");
    if (!is_safe_name(file.name) || !names.insert(file.name).second)
      return not_manifest("a file's name is not allowed");
    if (file.bytes > bytes.size() * manifest.chunk_bytes)  // a chunk has a hash of 32 bytes
      return not_manifest("a file is larger than its hashes");
    for (u64 chunk = 0; chunk < manifest.chunks_of(file); ++chunk) {
      Hash& hash = file.hashes.emplace_back();
      for (u8& byte : hash) byte = reader.get<u8>();
      if (!reader.is_good()) return not_manifest("it is cut short");
    }
    manifest.files.push_back(std::move(file));
  }
  if (!reader.is_at_end()) return not_manifest("more follows than belongs to it");
  return manifest;
}

bool is_safe_name(std::string_view name) {
  if (name.empty() || name.size() > 1024 || name.front() == '/') return false;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t slash = std::min(name.find('/', at), name.size());
    const std::string_view part = name.substr(at, slash - at);
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
    at = slash + 1;
  }
  return std::ranges::none_of(name, [](char c) { return static_cast<u8>(c) < 0x20; });
}

u64 Places::bits_offset(const Manifest& manifest) { return manifest.files.size() * sizeof(Place); }

u64 Places::bytes_for(const Manifest& manifest) {
  return bits_offset(manifest) + (manifest.chunks() + 7) / 8;
}

}  // namespace verbena::transfer
