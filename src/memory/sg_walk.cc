#include "memory/sg_walk.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "memory/touch.h"

namespace verbena {
namespace {

constexpr u32 kMaxPacketPayload = 4096;  // the largest path MTU

// What the null region reads as. A walk is about one packet.
Bytes zeros(u64 length) {
  static constexpr std::array<u8, kMaxPacketPayload> kZeros{};
  CHECK(length <= kZeros.size());
  return {kZeros.data(), length};
}

// The bytes [offset, offset + length) of one element; an element that wraps around 2^64 has none.
Resolved resolve(const ProtectionTable& table, PDId pd, const SGE& sge, u64 offset, u64 length,
                 Access need) {
  if (sge.address + (sge.length - 1) < sge.address) return {nullptr, MemoryFault::kBounds};
  return table.local(pd, sge.l_key, sge.address + offset, length, need);
}

// Calls visit(data, length) for each piece of [offset, offset + length) of the list, in order,
// until a piece is refused. kBounds when the list ends first. Empty elements are not looked at.
template <typename Visit>
MemoryFault walk(const ProtectionTable& table, PDId pd, std::span<const SGE> list, u64 offset,
                 u64 length, Access need, Visit visit) {
  for (const SGE& sge : list) {
    if (length == 0) break;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const u64 take = std::min(sge.length - offset, length);
    const Resolved piece = resolve(table, pd, sge, offset, take, need);
    if (!piece) return piece.fault;
    visit(piece.data, take);
    offset = 0;
    length -= take;
  }
  return length == 0 ? MemoryFault::kNone : MemoryFault::kBounds;
}

}  // namespace

MemoryFault gather(const ProtectionTable& table, PDId pd, std::span<const SGE> list, u64 offset,
                   u32 length, PayloadList& out) {
  const u32 before = out.count;
  const MemoryFault fault =
      walk(table, pd, list, offset, length, Access::kLocalRead, [&out](const u8* data, u64 bytes) {
        out.add(data == nullptr ? zeros(bytes) : Bytes(data, bytes));
      });
  if (fault != MemoryFault::kNone) return fault;
  for (u32 i = before; i < out.count; ++i)
    if (!is_readable(out.parts[i])) return MemoryFault::kGone;
  return MemoryFault::kNone;
}

MemoryFault locate(const ProtectionTable& table, PDId pd, std::span<const SGE> list, u64 offset,
                   u64 length, Access need, std::span<MemoryPiece> out, u32& count) {
  count = 0;
  bool fits = true, is_there = true;
  const MemoryFault fault = walk(table, pd, list, offset, length, need, [&](u8* data, u64 bytes) {
    fits &= count < out.size();
    is_there &= data != nullptr;
    if (fits) out[count++] = {data, bytes};
  });
  if (fault != MemoryFault::kNone) return fault;
  if (!is_there) return MemoryFault::kGone;
  return fits ? MemoryFault::kNone : MemoryFault::kBounds;
}

MemoryFault scatter(const ProtectionTable& table, PDId pd, std::span<const SGE> list, u64 offset,
                    Bytes data) {
  CHECK(list.size() <= kMaxSGE);
  struct Piece {
    u8* to;
    u64 length;
  };
  std::array<Piece, kMaxSGE> pieces;  // uninitialized: one is made per packet
  u32 count = 0;
  const MemoryFault fault =
      walk(table, pd, list, offset, data.size(), Access::kLocalWrite, [&](u8* to, u64 length) {
        pieces[count++] = {to, length};  // nullptr: to vanish
      });
  if (fault != MemoryFault::kNone) return fault;
  const bool there = touch([&] {
    const u8* from = data.data();
    for (u32 i = 0; i < count; ++i) {
      if (pieces[i].to != nullptr)
        std::memmove(pieces[i].to, from, pieces[i].length);  // a loopback payload may overlap
      from += pieces[i].length;
    }
  });
  return there ? MemoryFault::kNone : MemoryFault::kGone;
}

RefusedSGE find_refused(const ProtectionTable& table, PDId pd, std::span<const SGE> list,
                        Access need) {
  for (u32 i = 0; i < list.size(); ++i) {
    const SGE& sge = list[i];
    if (sge.length == 0) continue;
    const Resolved piece = resolve(table, pd, sge, 0, sge.length, need);
    if (!piece) return {piece.fault, i, sge, need, table.describe(sge.l_key.value)};
  }
  return {.need = need, .key = {}};
}

}  // namespace verbena
