// Fixed-width integers and strong identifier types, in the spelling of IBTA Vol 1.
// QPN, P_Key and R_Key are distinct types: mixing them up does not compile.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace verbena {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

// An identifier: it can be compared for equality and hashed, and nothing else.
template <typename Tag, typename Int>
struct Id {
  using Value = Int;
  Int value = 0;
  constexpr Id() = default;
  constexpr explicit Id(Int v) : value(v) {}
  friend constexpr bool operator==(Id, Id) = default;
};

using QPN = Id<struct QPNTag, u32>;    // Queue Pair Number, 24 bits. IBTA 3.5.1
using PKey = Id<struct PKeyTag, u16>;  // Partition Key: bit 15 = full member. IBTA 10.9
using QKey = Id<struct QKeyTag, u32>;  // Queue Key. IBTA 10.2.5
using LKey = Id<struct LKeyTag, u32>;  // Local key: index (24 bits) | variant (8 bits). IBTA 10.6
using RKey = Id<struct RKeyTag, u32>;  // Remote key, same layout as LKey

inline constexpr PKey kDefaultPKey{0xffff};
inline constexpr QPN kGSIQPN{1};               // General Services Interface. IBTA 13.5.1
inline constexpr QPN kMulticastQPN{0xffffff};  // destination QP of multicast. IBTA 9.4.1
inline constexpr QKey kGSIQKey{0x80010000};    // IBTA 13.5.2
inline constexpr u32 kMask24 = 0xffffff;

}  // namespace verbena

template <typename Tag, typename Int>
struct std::hash<verbena::Id<Tag, Int>> {
  std::size_t operator()(verbena::Id<Tag, Int> id) const noexcept {
    return std::hash<Int>{}(id.value);
  }
};
