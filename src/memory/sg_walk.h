// Walks over scatter/gather lists: the bytes [offset, offset + length) of a list, key by key.
// Every byte is checked against the protection table before it is touched; nothing is copied when
// any part is refused. What is granted may still not be there, or be protected: kGone, kProtected.
#pragma once

#include "memory/payload.h"
#include "memory/protection_table.h"

namespace verbena {

// Appends the pieces to `out`, each readable at this moment; of imported memory, a copy that is
// good until the next packet. Precondition: the range lies inside the list.
[[nodiscard]] MemoryFault gather(const ProtectionTable& table, PDId pd, std::span<const SGE> list,
                                 u64 offset, u32 length, PayloadList& out);
// The range, which may be longer than a packet's payload, where it lies in one element and in
// memory of this process that can be read now. nullopt: gather() it packet by packet.
[[nodiscard]] std::optional<Bytes> in_one_piece(const ProtectionTable& table, PDId pd,
                                                std::span<const SGE> list, u64 offset, u64 length);
// What a check of the table has granted, at most a packet's payload, if it can be read now; of
// imported memory, a copy that is good until the next packet.
[[nodiscard]] std::optional<Bytes> readable(const ProtectionTable& table, const u8* data,
                                            u32 length);
// The pieces as they lie in memory, none empty, of which nothing is touched: at most out.size(),
// `count` of them. kGone: not here (imported_memory.h); kBounds also: there are more.
struct MemoryPiece {
  u8* data = nullptr;
  u64 length_bytes = 0;
};
[[nodiscard]] MemoryFault locate(const ProtectionTable& table, PDId pd, std::span<const SGE> list,
                                 u64 offset, u64 length, Access need, std::span<MemoryPiece> out,
                                 u32& count);
// Copies `data` to the list from `offset` on. kBounds when the list ends before the data.
[[nodiscard]] MemoryFault scatter(const ProtectionTable& table, PDId pd, std::span<const SGE> list,
                                  u64 offset, Bytes data);

// Why touch() has just failed in this thread at memory that is here.
[[nodiscard]] MemoryFault fault_of_touch();

// The element that makes such a walk over all of the list fail, and why; or else the one that
// touch() has just failed at. kNone: neither, so that the list was too short, or imported memory
// was gone. For explanations.
struct RefusedSGE {
  MemoryFault fault = MemoryFault::kNone;
  u32 index = 0;
  SGE sge{};
  Access need = Access::kLocalRead;
  std::optional<KeyInfo> key{};
};
[[nodiscard]] RefusedSGE find_refused(const ProtectionTable& table, PDId pd,
                                      std::span<const SGE> list, Access need);

}  // namespace verbena
