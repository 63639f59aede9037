// ordered_copy: a copy whose last bytes become visible last, and at once. Programs that poll the
// end of a buffer for an RDMA WRITE rely on it, as they may with a card that writes in increasing
// address order. memcpy promises no order, so the last aligned word (or the last byte, if the end
// is not aligned) is one store with release semantics.
// The target belongs to the application, and may be unmapped: memory/touch.h. Far memory keeps this
// order by its own means.
#pragma once

#include <cstring>

#include "memory/touch.h"

namespace verbena {

// Stores the last sizeof(Word) bytes. Returns false if `to + size` is not aligned for that, or size
// is less.
template <typename Word>
bool store_last(u8* to, Bytes from) {
  if (from.size() < sizeof(Word)) return false;
  u8* at = to + (from.size() - sizeof(Word));
  if (reinterpret_cast<std::uintptr_t>(at) % sizeof(Word) != 0) return false;
  Word word;
  std::memcpy(&word, from.data() + (from.size() - sizeof(Word)), sizeof(Word));
  std::memcpy(to, from.data(), from.size() - sizeof(Word));
  __atomic_store_n(reinterpret_cast<Word*>(at), word, __ATOMIC_RELEASE);
  return true;
}

// Runs inside touch(), on memory of this process.
inline void copy_last_bytes_last(u8* to, Bytes from) {
  (void)(store_last<u64>(to, from) || store_last<u32>(to, from) || store_last<u16>(to, from) ||
         store_last<u8>(to, from));
}

// Returns false if `to` is not accessible. Precondition: it has room for from.size() bytes, and the
// two do not overlap.
[[nodiscard]] inline bool ordered_copy(u8* to, Bytes from) {
  return touch([&] { copy_last_bytes_last(to, from); });
}

}  // namespace verbena
