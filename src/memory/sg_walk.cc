#include "memory/sg_walk.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"
#include "memory/ordered_copy.h"
#include "memory/touch.h"

namespace verbena {
namespace {

// Resolves the bytes [offset, offset + length) of one element; an element that wraps around 2^64
// has none.
Resolved resolve(const ProtectionTable& table, PDId pd, const SGE& sge, u64 offset, u64 length,
                 Access need) {
  if (sge.address + (sge.length - 1) < sge.address) return {nullptr, MemoryFault::kBounds};
  return table.local(pd, sge.l_key, sge.address + offset, length, need);
}

// Calls visit(data, length) for each piece of [offset, offset + length) of the list, in order,
// until a piece is refused. Returns kBounds if the list ends first. Skips empty elements.
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

MemoryFault fault_of(CopyResult result) {
  switch (result) {
    case CopyResult::kDone: return MemoryFault::kNone;
    case CopyResult::kLater: return MemoryFault::kLater;
    case CopyResult::kGone: return MemoryFault::kGone;
  }
  CHECK_UNREACHABLE();
}

// Appends a copy of bytes for which is_here() is false. `ahead`: as for readable().
MemoryFault add_copy(const ProtectionTable& table, const u8* data, u64 length, u64 ahead,
                     CopyLane* lane, PayloadList& out) {
  CopyResult why;
  const std::optional<Bytes> copy = table.copies().read(
      table.far(), lane, data, static_cast<u32>(length), ahead, out.size_bytes, why);
  if (copy) out.add_unstable(*copy);
  return fault_of(why);
}

// Returns the first that is an error; otherwise kLater if one is.
MemoryFault worse(MemoryFault a, MemoryFault b) {
  return a == MemoryFault::kNone || a == MemoryFault::kLater ? (b == MemoryFault::kNone ? a : b)
                                                             : a;
}

void copy_here(std::span<const MemoryPiece> to, Bytes data) {
  const u8* from = data.data();
  for (const MemoryPiece& piece : to) {
    std::memmove(piece.data, from, piece.length_bytes);  // a loopback payload may overlap
    from += piece.length_bytes;
  }
}

MemoryFault touch_and_copy(std::span<const MemoryPiece> to, Bytes data) {
  return touch([&] { copy_here(to, data); }) ? MemoryFault::kNone : fault_of_touch();
}

// Copies to pieces of which some may be far.
MemoryFault copy(const ProtectionTable& table, std::span<const MemoryPiece> to, Bytes data,
                 CopyLane* lane) {
  for (const MemoryPiece& piece : to) {
    const Bytes part = data.first(piece.length_bytes);
    if (is_here(piece.data)) {
      if (const MemoryFault fault = touch_and_copy({&piece, 1}, part); fault != MemoryFault::kNone)
        return fault;
    } else if (const CopyResult result = table.copies().write(table.far(), lane, piece.data, part);
               result != CopyResult::kDone) {
      return fault_of(result);
    }
    data = data.subspan(piece.length_bytes);
  }
  return MemoryFault::kNone;
}

MemoryFault check_readable(Bytes bytes) {
  return is_readable(bytes) ? MemoryFault::kNone : fault_of_touch();
}

// Returns whether touch() last failed in these bytes.
bool was_touched(const u8* data, u64 length) {
  const auto at = reinterpret_cast<std::uintptr_t>(last_touch_fault.at);
  return at - reinterpret_cast<std::uintptr_t>(data) < length;
}

// gather() for a list of one element, the most frequent one.
MemoryFault gather_one(const ProtectionTable& table, PDId pd, const SGE& sge, u64 offset,
                       u32 length, PayloadList& out, CopyLane* lane) {
  if (length == 0) return MemoryFault::kNone;
  if (offset > sge.length || length > sge.length - offset) return MemoryFault::kBounds;
  const Resolved from = resolve(table, pd, sge, offset, length, Access::kLocalRead);
  if (!from) return from.fault;
  if (!is_here(from.data)) {
    table.copies().begin_gather(lane);
    const u64 ahead = sge.length - offset - length;
    const MemoryFault fault = add_copy(table, from.data, length, ahead, lane, out);
    if (fault == MemoryFault::kNone) table.copies().end_gather(lane);
    return fault;
  }
  const Bytes bytes(from.data, length);
  const MemoryFault fault = check_readable(bytes);
  if (fault == MemoryFault::kNone) out.add(bytes);
  return fault;
}

// scatter() for such a list.
MemoryFault scatter_to_one(const ProtectionTable& table, PDId pd, const SGE& sge, u64 offset,
                           Bytes data, CopyLane* lane) {
  if (data.empty()) return MemoryFault::kNone;
  if (offset > sge.length || data.size() > sge.length - offset) return MemoryFault::kBounds;
  const Resolved to = resolve(table, pd, sge, offset, data.size(), Access::kLocalWrite);
  if (!to) return to.fault;
  const MemoryPiece piece{to.data, data.size()};
  return copy(table, {&piece, 1}, data, lane);
}

}  // namespace

MemoryFault gather(const ProtectionTable& table, PDId pd, std::span<const SGE> list, u64 offset,
                   u32 length, PayloadList& out, CopyLane* lane) {
  if (list.size() == 1) return gather_one(table, pd, list.front(), offset, length, out, lane);
  const u32 before = out.count;
  MemoryFault copied = MemoryFault::kNone;
  bool any_far = false;
  const MemoryFault fault =
      walk(table, pd, list, offset, length, Access::kLocalRead, [&](const u8* data, u64 bytes) {
        if (is_here(data)) return out.add({data, bytes});
        if (!std::exchange(any_far, true)) table.copies().begin_gather(lane);
        copied = worse(copied, add_copy(table, data, bytes, 0, lane, out));
      });
  if (fault != MemoryFault::kNone) return fault;
  if (copied != MemoryFault::kNone) return copied;
  if (any_far) table.copies().end_gather(lane);
  for (u32 i = before; i < out.count; ++i)
    if (const MemoryFault unread = check_readable(out.parts[i]); unread != MemoryFault::kNone)
      return unread;
  return MemoryFault::kNone;
}

std::optional<Bytes> in_one_piece(const ProtectionTable& table, PDId pd, std::span<const SGE> list,
                                  u64 offset, u64 length) {
  auto sge = list.begin();
  for (; sge != list.end() && offset >= sge->length; ++sge) offset -= sge->length;
  if (sge == list.end() || length > sge->length - offset) return std::nullopt;
  const Resolved from = resolve(table, pd, *sge, offset, length, Access::kLocalRead);
  if (!from || !is_here(from.data)) return std::nullopt;
  const Bytes bytes(from.data, length);
  return is_readable(bytes) ? std::optional(bytes) : std::nullopt;
}

std::optional<Bytes> readable(const ProtectionTable& table, const u8* data, u32 length, u64 ahead,
                              CopyLane* lane, MemoryFault& why) {
  if (!is_here(data)) {
    CopyQueue& copies = table.copies();
    copies.begin_gather(lane);
    CopyResult result;
    const std::optional<Bytes> copy =
        copies.read(table.far(), lane, data, length, ahead, 0, result);
    if (copy) copies.end_gather(lane);
    why = fault_of(result);
    return copy;
  }
  const Bytes bytes(data, length);
  if (is_readable(bytes)) return bytes;
  why = fault_of_touch();
  return std::nullopt;
}

MemoryFault store_payload(const ProtectionTable& table, u8* to, Bytes from, CopyLane* lane) {
  if (!is_here(to)) return fault_of(table.copies().write(table.far(), lane, to, from));
  return ordered_copy(to, from) ? MemoryFault::kNone : fault_of_touch();
}

bool is_at(const ProtectionTable& table, const u8* data, Where where) {
  if (where == Where::kHere) return is_here(data);
  return data != nullptr && !is_here(data) && table.far().find(data).memory->is_late();
}

MemoryFault locate(const ProtectionTable& table, PDId pd, std::span<const SGE> list, u64 offset,
                   u64 length, Access need, Where where, std::span<MemoryPiece> out, u32& count) {
  count = 0;
  bool fits = true, is_there = true;
  const MemoryFault fault = walk(table, pd, list, offset, length, need, [&](u8* data, u64 bytes) {
    fits &= count < out.size();
    is_there &= is_at(table, data, where);
    if (fits) out[count++] = {data, bytes};
  });
  if (fault != MemoryFault::kNone) return fault;
  if (!is_there) return MemoryFault::kGone;
  return fits ? MemoryFault::kNone : MemoryFault::kBounds;
}

MemoryFault scatter(const ProtectionTable& table, PDId pd, std::span<const SGE> list, u64 offset,
                    Bytes data, CopyLane* lane) {
  if (list.size() == 1) return scatter_to_one(table, pd, list.front(), offset, data, lane);
  CHECK(list.size() <= kMaxSGE);
  std::array<MemoryPiece, kMaxSGE> pieces;  // uninitialized: one is made per packet
  u32 count = 0;
  bool all_here = true;
  const MemoryFault fault =
      walk(table, pd, list, offset, data.size(), Access::kLocalWrite, [&](u8* to, u64 length) {
        pieces[count++] = {to, length};
        all_here &= is_here(to);
      });
  if (fault != MemoryFault::kNone) return fault;
  const std::span<const MemoryPiece> to(pieces.data(), count);
  return all_here ? touch_and_copy(to, data) : copy(table, to, data, lane);
}

MemoryFault fault_of_touch() {
  return last_touch_fault.is_protected ? MemoryFault::kProtected : MemoryFault::kGone;
}

RefusedSGE find_refused(const ProtectionTable& table, PDId pd, std::span<const SGE> list,
                        Access need) {
  for (u32 i = 0; i < list.size(); ++i) {
    const SGE& sge = list[i];
    if (sge.length == 0) continue;
    const Resolved piece = resolve(table, pd, sge, 0, sge.length, need);
    const std::optional<KeyInfo> key = table.describe(sge.l_key.value);
    if (!piece) return {piece.fault, i, sge, need, key};
    if (is_here(piece.data) && was_touched(piece.data, sge.length))
      return {fault_of_touch(), i, sge, need, key};
  }
  return {.need = need, .key = {}};
}

}  // namespace verbena
