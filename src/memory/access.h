// Access rights of a memory region or window, and the rights that operations need. IBTA Vol 1,
// 10.6.3.1, Annex A19.
#pragma once

#include "base/types.h"

namespace verbena {

enum class Access : u32 {
  kLocalRead = 0,  // always granted
  kLocalWrite = 1u << 0,
  kRemoteWrite = 1u << 1,
  kRemoteRead = 1u << 2,
  kRemoteAtomic = 1u << 3,
  kMWBind = 1u << 4,
  kZeroBased = 1u << 5,
  kFlushGlobal = 1u << 8,
  kFlushPersistent = 1u << 9,  // a QP may have it; no region does: persistence cannot be promised
};

// A set of Access bits.
struct AccessFlags {
  u32 bits = 0;
  constexpr AccessFlags() = default;
  constexpr AccessFlags(Access a) : bits(static_cast<u32>(a)) {}  // NOLINT: a set of one
  constexpr explicit AccessFlags(u32 b) : bits(b) {}
  constexpr bool has(Access a) const { return (bits & static_cast<u32>(a)) == static_cast<u32>(a); }
  friend constexpr AccessFlags operator|(AccessFlags a, AccessFlags b) {
    return AccessFlags(a.bits | b.bits);
  }
  friend constexpr bool operator==(AccessFlags, AccessFlags) = default;
};
constexpr AccessFlags operator|(Access a, Access b) { return AccessFlags(a) | AccessFlags(b); }

}  // namespace verbena
