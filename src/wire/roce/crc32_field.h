// Arithmetic on CRC-32 values: polynomials over GF(2) modulo Ethernet's
//   P = x^32+x^26+x^23+x^22+x^16+x^12+x^11+x^10+x^8+x^7+x^5+x^4+x^2+x+1.
// Values are reflected, as the CRC register is: bit 31 is the coefficient of x^0, bit 0 of x^31.
// A zero byte through the register is a multiplication by x^8; P is primitive with x^0 present, so
// x has an inverse and the register can be run backwards.
#pragma once

#include <array>

#include "base/types.h"

namespace verbena::crc32_field {

inline constexpr u32 kP = 0xedb88320;  // P without x^32, reflected
inline constexpr u32 kOne = 1u << 31;  // x^0

constexpr u32 times_x(u32 a) { return (a >> 1) ^ ((a & 1) != 0 ? kP : 0); }
constexpr u32 over_x(u32 a) { return (a & kOne) != 0 ? ((a ^ kP) << 1) | 1 : a << 1; }

// The product of x^4 and the four highest coefficients, by their nibble.
inline constexpr std::array<u32, 16> kTimesX4 = [] {
  std::array<u32, 16> table{};
  for (u32 i = 0; i < table.size(); ++i) table[i] = times_x(times_x(times_x(times_x(i))));
  return table;
}();

// a * b mod P, four coefficients of `a` at a time (Horner's rule).
constexpr u32 multiply(u32 a, u32 b) {
  std::array<u32, 16> multiples{};  // of b, by the nibble x^0 x^1 x^2 x^3
  for (u32 bit = 8; bit != 0; bit >>= 1, b = times_x(b)) multiples[bit] = b;
  for (u32 i = 3; i < multiples.size(); ++i)
    multiples[i] = multiples[i & (i - 1)] ^
                   multiples[i & (~i + 1)];  // the value without its lowest bit, and that bit
  u32 product = 0;
  for (int shift = 0; shift < 32; shift += 4)
    product = (product >> 4) ^ kTimesX4[product & 15] ^ multiples[(a >> shift) & 15];
  return product;
}

// x^(8 n): runs the register forwards over n bytes of zeros.
constexpr u32 forward(std::size_t n) {
  u32 power = kOne;
  for (std::size_t i = 0; i < 8 * n; ++i) power = times_x(power);
  return power;
}

// x^(-8 n): runs the register backwards over n bytes of zeros. n <= 65535.
class BackwardPowers {
 public:
  constexpr BackwardPowers() {
    u32 power = kOne;
    for (u32& entry : low_) {
      entry = power;
      for (int i = 0; i < 8; ++i) power = over_x(power);
    }
    const u32 step = power;  // x^(-8 * 256)
    power = kOne;
    for (u32& entry : high_) {
      entry = power;
      power = multiply(power, step);
    }
  }
  constexpr u32 of(std::size_t n) const { return multiply(high_[n >> 8 & 255], low_[n & 255]); }

 private:
  std::array<u32, 256> low_{}, high_{};  // x^(-8 i), x^(-8 * 256 i)
};

}  // namespace verbena::crc32_field
