// The loops, included by kernels_SET.cc: the build gives VERBENA_KERNELS, the namespace, and the
// flags of that instruction set. Loops are plain, so that the compiler vectorises them. Nothing
// here may be an inline function that other files share: the linker could keep the copy that was
// compiled for another processor.
#include "coll/reduce/kernels.h"

namespace verbena::coll::VERBENA_KERNELS {
namespace {

template <typename To, typename From>
To bits(From from) {
  return __builtin_bit_cast(To, from);
}

// --- how elements are computed with: Load and store between memory and a wider type

template <typename T>
struct Plain {
  using Stored = T;
  using Wide = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};

// Sums and products of integers wrap around.
template <typename T, typename Unsigned>
struct Integer {
  using Stored = T;
  using Wide = T;
  using Wrapping = Unsigned;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};

struct BFloat16 {
  using Stored = u16;
  using Wide = float;
  static float load(u16 value) { return bits<float>(static_cast<u32>(value) << 16); }
  static u16 store(float value) {
    const u32 b = bits<u32>(value);
    const u32 rounded = (b + 0x7fff + (b >> 16 & 1)) >> 16;  // to nearest, ties to even
    const bool is_nan = (b & 0x7fffffff) > 0x7f800000;
    return static_cast<u16>(is_nan ? (b >> 16 | 0x40) : rounded);
  }
};

struct Float16 {
  using Stored = u16;
  using Wide = float;
  static float load(u16 value) {
    const u32 sign = (static_cast<u32>(value) & 0x8000) << 16;
    const u32 magnitude = (static_cast<u32>(value) & 0x7fff) << 13;
    const u32 scaled = bits<u32>(bits<float>(magnitude) * 0x1p112f);  // subnormals, too
    const u32 special = magnitude >= 0x0f800000 ? 0x7f800000 : 0;     // infinity or NaN
    return bits<float>(sign | scaled | special);
  }
  static u16 store(float value) {
    const u32 b = bits<u32>(value), sign = b >> 16 & 0x8000, magnitude = b & 0x7fffffff;
    const u32 normal = (magnitude + 0xc8000fff + (magnitude >> 13 & 1)) >> 13;
    const u32 subnormal = bits<u32>(bits<float>(magnitude) + 0.5f) - 0x3f000000;
    const u32 special = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
    const u32 finite = magnitude < 0x38800000 ? subnormal : normal;
    return static_cast<u16>(sign | (magnitude >= 0x47800000 ? special : finite));
  }
};

// --- operations

template <typename E>
concept Wraps = requires {
  typename E::Wrapping;
};

struct Sum {
  template <typename E, typename W>
  static W apply(W a, W b) {
    if constexpr (Wraps<E>) {
      using U = typename E::Wrapping;
      return static_cast<W>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else {
      return a + b;
    }
  }
};
struct Product {
  template <typename E, typename W>
  static W apply(W a, W b) {
    if constexpr (Wraps<E>) {
      using U = typename E::Wrapping;
      return static_cast<W>(static_cast<U>(u64{static_cast<U>(a)} * u64{static_cast<U>(b)}));
    } else {
      return a * b;
    }
  }
};
struct Min {
  template <typename E, typename W>
  static W apply(W a, W b) {
    return b < a || b != b ? b : a;  // a NaN in either is the result
  }
};
struct Max {
  template <typename E, typename W>
  static W apply(W a, W b) {
    return b > a || b != b ? b : a;
  }
};
struct And {
  template <typename E, typename W>
  static W apply(W a, W b) {
    return static_cast<W>(a & b);
  }
};
struct Or {
  template <typename E, typename W>
  static W apply(W a, W b) {
    return static_cast<W>(a | b);
  }
};
struct Xor {
  template <typename E, typename W>
  static W apply(W a, W b) {
    return static_cast<W>(a ^ b);
  }
};

template <typename E, typename Op>
void combine(void* to, const void* a, const void* b, std::size_t count) {
  using T = typename E::Stored;
  using W = typename E::Wide;
  T* const out = static_cast<T*>(to);
  const T* const left = static_cast<const T*>(a);
  const T* const right = static_cast<const T*>(b);
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    out[i] = E::store(Op::template apply<E, W>(E::load(left[i]), E::load(right[i])));
}

template <typename E>
void divide(void* values, std::size_t count, u32 divisor) {
  using T = typename E::Stored;
  using W = typename E::Wide;
  T* const out = static_cast<T*>(values);
  if constexpr (Wraps<E>) {
    for (std::size_t i = 0; i < count; ++i)
      out[i] = static_cast<T>(static_cast<i64>(out[i]) / static_cast<i64>(divisor));
  } else {
    const W by = static_cast<W>(divisor);
    for (std::size_t i = 0; i < count; ++i) out[i] = E::store(E::load(out[i]) / by);
  }
}

using Int8 = Integer<signed char, u8>;
using UInt8 = Integer<u8, u8>;
using Int32 = Integer<i32, u32>;
using Int64 = Integer<i64, u64>;

// An average is a sum first; divide() makes the rest.
template <typename E>
constexpr CombineRow row() {
  if constexpr (Wraps<E>) {
    return {{combine<E, Sum>, combine<E, Product>, combine<E, Min>, combine<E, Max>,
             combine<E, Sum>, combine<E, And>, combine<E, Or>, combine<E, Xor>}};
  } else {
    return {{combine<E, Sum>, combine<E, Product>, combine<E, Min>, combine<E, Max>,
             combine<E, Sum>, nullptr, nullptr, nullptr}};
  }
}

}  // namespace

const Kernels kKernels = {
    VERBENA_KERNELS_NAME,
    {row<Int8>(), row<UInt8>(), row<Int32>(), row<Int64>(), row<Float16>(), row<BFloat16>(),
     row<Plain<float>>(), row<Plain<double>>()},
    {divide<Int8>, divide<UInt8>, divide<Int32>, divide<Int64>, divide<Float16>, divide<BFloat16>,
     divide<Plain<float>>, divide<Plain<double>>}};

}  // namespace verbena::coll::VERBENA_KERNELS
