// Component: a bit field of a management attribute, as the standard's tables list them. IBTA Vol 1,
// 14.2.5, 16.1.3. Bits count from the most significant bit of the attribute's first byte.
#pragma once

#include <span>

#include "base/types.h"

namespace verbena::management {

struct Component {
  u16 bit = 0;
  u8 width = 0;  // 1..64 bits
};

// Precondition of both: the component lies within `attribute`.
[[nodiscard]] constexpr u64 get(std::span<const u8> attribute, Component component) {
  u64 value = 0;
  for (u32 i = component.bit; i < u32{component.bit} + component.width;) {
    const u32 left = u32{component.bit} + component.width - i, in_byte = 8 - i % 8;
    const u32 taken = left < in_byte ? left : in_byte;
    const u32 bits = attribute[i / 8] >> (in_byte - taken) & ((1u << taken) - 1);
    value = value << taken | bits;
    i += taken;
  }
  return value;
}

constexpr void put(std::span<u8> attribute, Component component, u64 value) {
  u32 left = component.width;
  for (u32 i = component.bit; left != 0;) {
    const u32 in_byte = 8 - i % 8, taken = left < in_byte ? left : in_byte;
    const u32 shift = in_byte - taken, mask = ((1u << taken) - 1) << shift;
    const u32 bits = static_cast<u32>(value >> (left - taken)) << shift & mask;
    attribute[i / 8] = static_cast<u8>((attribute[i / 8] & ~mask) | bits);
    i += taken;
    left -= taken;
  }
}

}  // namespace verbena::management
