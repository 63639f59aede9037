// Walks over scatter/gather lists: the bytes [offset, offset + length) of a list, key by key.
// Every byte is checked against the protection table before it is touched; nothing is copied when
// any part is refused. What is granted may still not be there: kGone.
#pragma once

#include "memory/payload.h"
#include "memory/protection_table.h"

namespace verbena {

// Appends the pieces to `out`, each readable at this moment. Precondition: the range lies inside
// the list.
[[nodiscard]] MemoryFault gather(const ProtectionTable& table, PDId pd, std::span<const SGE> list,
                                 u64 offset, u32 length, PayloadList& out);
// Copies `data` to the list from `offset` on. kBounds when the list ends before the data.
[[nodiscard]] MemoryFault scatter(const ProtectionTable& table, PDId pd, std::span<const SGE> list,
                                  u64 offset, Bytes data);

}  // namespace verbena
