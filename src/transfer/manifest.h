// Manifest: the files of a model, and the hash of each chunk of them. All who serve the same model
// have the same manifest, byte for byte. Places: where one of them has the files in its memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transfer/blake3.h"
#include "transfer/list.h"

namespace verbena::transfer {

struct ModelFile {
  std::string name{};  // relative, without "." and ".."
  u64 bytes = 0;
  std::vector<Hash> hashes{};  // of its chunks
  friend bool operator==(const ModelFile&, const ModelFile&) = default;
};

struct Manifest {
  static constexpr u64 kMinChunkBytes = 4096, kMaxChunkBytes = u64{64} << 20;
  static constexpr u32 kMaxFiles = 65536;

  u64 chunk_bytes = u64{1} << 20;
  std::vector<ModelFile> files{};

  [[nodiscard]] u64 bytes() const;
  [[nodiscard]] u64 chunks() const;
  [[nodiscard]] u64 chunks_of(const ModelFile& file) const {
    return (file.bytes + chunk_bytes - 1) / chunk_bytes;
  }
  [[nodiscard]] std::string encode() const;
  // Fails on bytes that encode() does not produce, and on names that leave the target's folder.
  [[nodiscard]] static Expected<Manifest> decode(std::string_view bytes);
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// A name under which a file may be written below a folder.
[[nodiscard]] bool is_safe_name(std::string_view name);

struct Place {
  u64 address = 0, region = 0;  // of a file, in the server's memory
  friend bool operator==(const Place&, const Place&) = default;
};
// Places: the place of each file of the manifest, then a bit for each chunk that can be read.
struct Places {
  std::vector<Place> files{};
  [[nodiscard]] static u64 bytes_for(const Manifest& manifest);
  [[nodiscard]] static u64 bits_offset(const Manifest& manifest);
};

}  // namespace verbena::transfer
