// Memory of another process, from which a region may be made (ibv_import_mr(3)). No pointer leads
// to it: a driver copies it, by calls. In place of a pointer such a region has a number that no
// pointer of a program equals. So code that takes pointers needs one test for both imported memory
// and the null region: is_here().
//   | 1 | region (15) | offset in it (48) |
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "memory/sge.h"

namespace verbena {

// Returns true if the CPU can access the byte. Returns false for nullptr (the null region) and for
// imported memory.
[[nodiscard]] inline bool is_here(const u8* at) { return reinterpret_cast<std::intptr_t>(at) > 0; }

class ImportedMemory {
 public:
  virtual ~ImportedMemory() = default;
  // Both copy [offset, offset + size) of the region; the range lies inside of it. They return false
  // if some byte does not exist, or the region has ended; bytes before it may have been copied.
  [[nodiscard]] virtual bool read(u64 offset, MutableBytes to) = 0;
  [[nodiscard]] virtual bool write(u64 offset,
                                   Bytes from) = 0;  // the last bytes become visible last
};

// The imported regions of one device. One owner, the ProtectionTable.
class ImportedRegions {
 public:
  static constexpr u64 kMaxLength = u64{1} << 47;  // every address of a process

  // Returns the base of the region; nullopt if there are too many regions.
  [[nodiscard]] std::optional<u64> add(std::shared_ptr<ImportedMemory> memory);
  void remove(u64 base);  // `base`: as add() returned it
  [[nodiscard]] static bool is_imported(u64 base) { return base >> 63 != 0; }

  // Reads `length` bytes, at most a packet's payload, at `from`, where is_here() is false; the null
  // region gives zeros. Returns a copy that is valid until the next call for the same `at`, the
  // offset in that payload. Returns nullopt if the memory has gone.
  [[nodiscard]] std::optional<Bytes> read(const u8* from, u64 length, u32 at) const;
  // Writes to the null region vanish. Returns false if the memory has gone.
  [[nodiscard]] bool write(u8* to, Bytes from) const;

 private:
  static constexpr u32 kMaxPayload = 4096;  // the largest path MTU

  std::vector<std::shared_ptr<ImportedMemory>> regions_;  // nullptr: free
  std::unique_ptr<std::array<u8, kMaxPayload>> copy_;     // allocated with the first region
};

}  // namespace verbena
