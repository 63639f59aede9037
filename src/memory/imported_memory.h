// Memory of another process, which a region may be made of (ibv_import_mr(3)). No pointer leads
// there: a driver copies it, by calls. Where regions of our own have a pointer, those have a number
// that no pointer of a program equals, so that what takes pointers needs one test for both this and
// the null region: is_here().
//   | 1 | region (15) | offset in it (48) |
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "memory/sge.h"

namespace verbena {

// A byte that the CPU can access. Not: nullptr, in the null region; imported memory.
[[nodiscard]] inline bool is_here(const u8* at) { return reinterpret_cast<std::intptr_t>(at) > 0; }

class ImportedMemory {
 public:
  virtual ~ImportedMemory() = default;
  // Of [offset, offset + size) of the region, which lies inside of it. False: some byte is not
  // there, or the region has gone; those before it may have been copied.
  [[nodiscard]] virtual bool read(u64 offset, MutableBytes to) = 0;
  [[nodiscard]] virtual bool write(u64 offset,
                                   Bytes from) = 0;  // the last bytes become visible last
};

// What is not here. One owner, the ProtectionTable.
class ImportedRegions {
 public:
  static constexpr u64 kMaxLength = u64{1} << 47;  // every address of a process

  // The place of its first byte; nullopt: too many.
  [[nodiscard]] std::optional<u64> add(std::shared_ptr<ImportedMemory> memory);
  void remove(u64 base);  // what add() gave
  [[nodiscard]] static bool is_imported(u64 base) { return base >> 63 != 0; }

  // What is at `from`, which is not here: zeros in the null region. At most a packet's payload; a
  // copy, good until the next call for the same `at`, the offset in that payload. nullopt: gone.
  [[nodiscard]] std::optional<Bytes> read(const u8* from, u64 length, u32 at) const;
  // Writes vanish in the null region. False: gone.
  [[nodiscard]] bool write(u8* to, Bytes from) const;

 private:
  static constexpr u32 kMaxPayload = 4096;  // the largest path MTU

  std::vector<std::shared_ptr<ImportedMemory>> regions_;  // nullptr: free
  std::unique_ptr<std::array<u8, kMaxPayload>> copy_;     // with the first region
};

}  // namespace verbena
