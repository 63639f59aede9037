// Walks over scatter/gather lists: the bytes [offset, offset + length) of a list, key by key. Every
// byte is checked against the protection table before it is accessed. Nothing is copied if any part
// is refused. Granted memory may still be unmapped or protected: kGone, kProtected.
#pragma once

#include "memory/payload.h"
#include "memory/protection_table.h"

namespace verbena {

// `lane` is that of the asking QP half. If it is nullptr, far memory whose copies end late counts
// as gone.

// Appends the pieces to `out`, each readable at this moment. Far memory becomes a copy that is
// valid until the next packet; kLater: it has not arrived yet. Precondition: the range lies inside
// the list.
[[nodiscard]] MemoryFault gather(const ProtectionTable& table, PDId pd, std::span<const SGE> list,
                                 u64 offset, u32 length, PayloadList& out,
                                 CopyLane* lane = nullptr);
// Returns the range, which may be longer than a packet's payload, if it lies in one element and in
// memory of this process that can be read now. Otherwise nullopt: call gather() for each packet.
[[nodiscard]] std::optional<Bytes> in_one_piece(const ProtectionTable& table, PDId pd,
                                                std::span<const SGE> list, u64 offset, u64 length);
// Finds memory that a check of the table has granted, at most a packet's payload, if it can be read
// now. Far memory becomes a copy that is valid until the next packet. `ahead`: so many bytes that
// follow will be asked for. Returns nullopt if it cannot be read: `why`.
[[nodiscard]] std::optional<Bytes> readable(const ProtectionTable& table, const u8* data,
                                            u32 length, u64 ahead, CopyLane* lane,
                                            MemoryFault& why);
// Copies `from` to memory that a check of the table has granted, the last bytes last
// (memory/ordered_copy.h). kLater: nothing counts as written.
[[nodiscard]] MemoryFault store_payload(const ProtectionTable& table, u8* to, Bytes from,
                                        CopyLane* lane);
// locate() finds the pieces in memory, none empty, and accesses none: at most out.size(), `count`
// of them. It returns kGone if a piece is not `where`, kBounds also if there are more pieces.
enum class Where : u8 {
  kHere,  // is_here()
  kLate,  // far memory whose copies end late
};
struct MemoryPiece {
  u8* data = nullptr;
  u64 length_bytes = 0;
};
[[nodiscard]] MemoryFault locate(const ProtectionTable& table, PDId pd, std::span<const SGE> list,
                                 u64 offset, u64 length, Access need, Where where,
                                 std::span<MemoryPiece> out, u32& count);
// Returns whether memory that a check of the table has granted is there.
[[nodiscard]] bool is_at(const ProtectionTable& table, const u8* data, Where where);
// Copies `data` to the list from `offset` on. Returns kBounds if the list ends before the data.
// kLater: nothing counts as written.
[[nodiscard]] MemoryFault scatter(const ProtectionTable& table, PDId pd, std::span<const SGE> list,
                                  u64 offset, Bytes data, CopyLane* lane = nullptr);

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
