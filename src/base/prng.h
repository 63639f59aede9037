// PRNG: xoshiro256** (Blackman and Vigna, 2018), seeded by splitmix64. Deterministic: the same seed
// gives the same stream everywhere. Not for secrets by itself; the live driver seeds it from the
// kernel's random source.
#pragma once

#include <array>
#include <bit>

#include "base/check.h"
#include "base/types.h"

namespace verbena {

class PRNG {
 public:
  using result_type = u64;

  explicit constexpr PRNG(u64 seed) {
    for (u64& word : state_) word = splitmix64(seed);
  }

  constexpr u64 next() {
    const u64 result = std::rotl(state_[1] * 5, 7) * 9;
    const u64 t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }
  // Uniform in [0, bound), bound > 0 (Lemire's multiply-shift; bias below 2^-32 for bound < 2^32).
  constexpr u64 below(u64 bound) {
    return static_cast<u64>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }
  // Uniform in [low, high], both included.
  constexpr u64 in(u64 low, u64 high) {
    const u64 values = high - low + 1;
    return values == 0 ? next() : low + below(values);  // 0: all 2^64
  }
  // Returns true with probability p.
  constexpr bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1.0p-53 < p; }
  // Returns an independent stream, for one component of a system that has one seed.
  constexpr PRNG fork() { return PRNG(next()); }

  static constexpr u64 min() { return 0; }
  static constexpr u64 max() { return ~u64{0}; }
  constexpr u64 operator()() { return next(); }

 private:
  static constexpr u64 splitmix64(u64& x) {
    u64 z = (x += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::array<u64, 4> state_{};
};

}  // namespace verbena
