// Walks over scatter/gather lists: the bytes [offset, offset + length) of a list, key by key. Every
// byte is checked against the protection table before it is accessed. Nothing is copied if any part
// is refused. Granted memory may still be unmapped or protected: kGone, kProtected.
#pragma once

#include "memory/payload.h"
#include "memory/protection_table.h"

namespace verbena {

// Appends the pieces to `out`, each readable at this moment. Imported memory becomes a copy that is
// valid until the next packet. Precondition: the range lies inside the list.
[[nodiscard]] MemoryFault gather(const ProtectionTable& table, PDId pd, std::span<const SGE> list,
                                 u64 offset, u32 length, PayloadList& out);
// Returns the range, which may be longer than a packet's payload, if it lies in one element and in
// memory of this process that can be read now. nullopt: call gather() for each packet.
[[nodiscard]] std::optional<Bytes> in_one_piece(const ProtectionTable& table, PDId pd,
                                                std::span<const SGE> list, u64 offset, u64 length);
// Appends memory that a check of the table has granted, at most a packet's payload, if it can be
// read now. Imported memory becomes a copy that is valid until the next packet.
[[nodiscard]] std::optional<Bytes> readable(const ProtectionTable& table, const u8* data,
                                            u32 length);
// locate() finds the pieces in memory, none empty, and accesses none: at most out.size(), `count`
// of them. It returns kGone if is_here() is false for a piece, kBounds also if there are more
// pieces.
struct MemoryPiece {
  u8* data = nullptr;
  u64 length_bytes = 0;
};
[[nodiscard]] MemoryFault locate(const ProtectionTable& table, PDId pd, std::span<const SGE> list,
                                 u64 offset, u64 length, Access need, std::span<MemoryPiece> out,
                                 u32& count);
// Copies `data` to the list from `offset` on. Returns kBounds if the list ends before the data.
[[nodiscard]] MemoryFault scatter(const ProtectionTable& table, PDId pd, std::span<const SGE> list,
                                  u64 offset, Bytes data);

// Returns why touch() has just failed in this thread at memory for which is_here() is true.
[[nodiscard]] MemoryFault fault_of_touch();

// Returns the element that makes such a walk over the whole list fail, and the fault; otherwise the
// element at which touch() has just failed. kNone: neither, so the list was too short, or imported
// memory was gone. For explanations.
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
