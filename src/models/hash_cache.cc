#include "models/hash_cache.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transfer/fields.h"
#include "transfer/manifest.h"

namespace verbena::models {
namespace {

using transfer::FieldReader;
using transfer::FieldWriter;
using transfer::Hash;
using transfer::Manifest;

constexpr u32 kHashCacheMagic = 0x31484256;  // "VBH1"

Hash seal_of(std::string_view bytes) {
  return transfer::blake3({reinterpret_cast<const u8*>(bytes.data()), bytes.size()});
}

void append_hash(std::string& bytes, const Hash& hash) {
  bytes.append(reinterpret_cast<const char*>(hash.data()), hash.size());
}

u64 chunks_in(u64 bytes, u64 chunk_bytes) {
  return bytes / chunk_bytes + (bytes % chunk_bytes != 0 ? 1 : 0);
}

bool write_whole(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(file, bytes.data(), bytes.size());
    if (wrote <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

}  // namespace

const std::vector<Hash>* HashCache::find(const std::string& name, const FileIdentity& identity,
                                         u64 chunk_bytes) const {
  const auto entry = entries_.find(name);
  const bool is_same = entry != entries_.end() && entry->second.identity == identity &&
                       entry->second.chunk_bytes == chunk_bytes;
  return is_same ? &entry->second.hashes : nullptr;
}

void HashCache::keep(const std::string& name, const FileIdentity& identity, u64 chunk_bytes,
                     std::vector<Hash> hashes, u64 hashed_at_ns) {
  const u64 touched_ns = std::max(identity.modified_ns, identity.changed_ns);
  if (hashed_at_ns < kSettledNs || touched_ns > hashed_at_ns - kSettledNs) {
    entries_.erase(name);
    return;
  }
  entries_.insert_or_assign(name, Entry{identity, chunk_bytes, std::move(hashes)});
}

void HashCache::retain(const std::vector<std::string>& names) {
  const std::set<std::string> wanted(names.begin(), names.end());
  std::erase_if(entries_, [&](const auto& entry) { return !wanted.contains(entry.first); });
}

// The seal at the end tells a file that was cut or damaged.
std::string HashCache::encode() const {
  std::string bytes =
      FieldWriter().put(kHashCacheMagic).put(static_cast<u32>(entries_.size())).bytes();
  for (const auto& [name, entry] : entries_) {
    bytes += FieldWriter()
                 .put(name)
                 .put(entry.identity.inode)
                 .put(entry.identity.bytes)
                 .put(entry.identity.modified_ns)
                 .put(entry.identity.changed_ns)
                 .put(entry.chunk_bytes)
                 .bytes();
    for (const Hash& hash : entry.hashes) append_hash(bytes, hash);
  }
  append_hash(bytes, seal_of(bytes));
  return bytes;
}

HashCache HashCache::decode(std::string_view bytes) {
  if (bytes.size() < sizeof(Hash)) return {};
  const std::string_view body = bytes.substr(0, bytes.size() - sizeof(Hash));
  const Hash seal = seal_of(body);
  if (std::memcmp(seal.data(), bytes.data() + body.size(), seal.size()) != 0) return {};
  FieldReader reader(body);
  if (reader.get<u32>() != kHashCacheMagic) return {};
  const u32 files = reader.get<u32>();
  HashCache cache;
  for (u32 i = 0; i < files; ++i) {
    const std::string name = reader.text();
    Entry entry;
    entry.identity.inode = reader.get<u64>();
    entry.identity.bytes = reader.get<u64>();
    entry.identity.modified_ns = reader.get<u64>();
    entry.identity.changed_ns = reader.get<u64>();
    entry.chunk_bytes = reader.get<u64>();
    if (!reader.is_good() || entry.chunk_bytes < Manifest::kMinChunkBytes) return {};
    const u64 chunks = chunks_in(entry.identity.bytes, entry.chunk_bytes);
    if (chunks > body.size() / sizeof(Hash)) return {};
    entry.hashes.resize(chunks);
    for (Hash& hash : entry.hashes)
      for (u8& byte : hash) byte = reader.get<u8>();
    cache.entries_.insert_or_assign(name, std::move(entry));
  }
  return reader.is_at_end() ? cache : HashCache{};
}

HashCache HashCache::load(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const u64 size = static_cast<u64>(status.st_size);
  if (size > kMaxBytes) return {};
  std::ifstream file(path, std::ios::binary);
  std::string bytes(size, '\0');
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) return {};
  return decode(bytes);
}

Expected<void> HashCache::save(const std::string& path) const {
  const std::string bytes = encode();
  if (bytes.size() > kMaxBytes) return tl::unexpected(path + ": it would have more than 1 GiB");
  const std::string part = path + "." + std::to_string(getpid());
  const int file = open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return tl::unexpected(path + ": " + std::strerror(errno));
  const bool is_written = write_whole(file, bytes);
  const bool is_closed = close(file) == 0;
  if (is_written && is_closed && rename(part.c_str(), path.c_str()) == 0) return {};
  const int error = errno;
  unlink(part.c_str());
  return tl::unexpected(path + ": " + std::strerror(error));
}

}  // namespace verbena::models
