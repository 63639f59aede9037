// The memory of a KV cache in a process of `verbena bench kv`, and its block tables.
#pragma once

#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "base/prng.h"
#include "models/kv_bench_options.h"

namespace verbena::models {

// A contiguous WRITE of a request's bytes uses its begin.
class KVCacheMemory {
 public:
  explicit KVCacheMemory(u64 bytes) : bytes_(bytes) {
    void* const at =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return;
    data_ = static_cast<u8*>(at);
    madvise(data_, bytes, MADV_HUGEPAGE);
    std::memset(data_, 1, bytes);
  }
  ~KVCacheMemory() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  KVCacheMemory(const KVCacheMemory&) = delete;
  KVCacheMemory& operator=(const KVCacheMemory&) = delete;
  [[nodiscard]] u8* data() const { return data_; }  // nullptr if there was no memory
  [[nodiscard]] u64 bytes() const { return bytes_; }
  [[nodiscard]] u64 base() const { return reinterpret_cast<u64>(data_); }

 private:
  u8* data_ = nullptr;
  u64 bytes_;
};

enum class KVSide : u64 { kPrefill = 1, kDecode = 2 };

// Scattered, as the tables of a cache that was in use for a while. By request.
inline std::vector<std::vector<u32>> block_tables(const KVBenchOptions& options, KVSide side) {
  std::vector<u32> all(options.layout().blocks);
  for (u32 i = 0; i < all.size(); ++i) all[i] = i;
  PRNG prng(static_cast<u64>(side));
  for (u64 i = all.size(); i > 1; --i) std::swap(all[i - 1], all[prng.below(i)]);
  std::vector<std::vector<u32>> tables;
  for (u32 i = 0; i < options.requests; ++i)
    tables.emplace_back(all.begin() + i * options.blocks, all.begin() + (i + 1) * options.blocks);
  return tables;
}

}  // namespace verbena::models
