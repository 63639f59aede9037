// Readers and writers of little-endian fields at offsets that are checked at compile time, as those
// of bytes.h are for network order. NVMe uses them.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "base/types.h"

namespace verbena {

template <typename T>
constexpr T load_le(const u8* p) {
  T v = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) v = static_cast<T>(v | T{p[i]} << (8 * i));
  return v;
}
template <typename T>
constexpr void store_le(u8* p, T v) {
  for (std::size_t i = 0; i < sizeof(T); ++i) p[i] = static_cast<u8>(v >> (8 * i));
}

template <std::size_t N>
class LEReader {
 public:
  constexpr explicit LEReader(std::span<const u8, N> in) : in_(in) {}
  template <typename T, std::size_t At>
  constexpr T get() const {
    static_assert(At + sizeof(T) <= N);
    return load_le<T>(in_.data() + At);
  }
  // Characters up to the first NUL, or `Size`.
  template <std::size_t At, std::size_t Size>
  [[nodiscard]] std::string_view text() const {
    static_assert(At + Size <= N);
    const auto field = in_.template subspan<At, Size>();
    const auto end = std::ranges::find(field, u8{0});
    return {reinterpret_cast<const char*>(field.data()),
            static_cast<std::size_t>(end - field.begin())};
  }

 private:
  std::span<const u8, N> in_;
};

template <std::size_t N>
class LEWriter {
 public:
  constexpr explicit LEWriter(std::span<u8, N> out) : out_(out) {}
  template <typename T, std::size_t At>
  constexpr void put(T v) const {
    static_assert(At + sizeof(T) <= N);
    store_le<T>(out_.data() + At, v);
  }
  // At most `Size` characters; `fill` follows them.
  template <std::size_t At, std::size_t Size>
  void text(std::string_view text, char fill = '\0') const {
    static_assert(At + Size <= N);
    const auto field = out_.template subspan<At, Size>();
    text = text.substr(0, Size);
    std::ranges::copy(text, field.begin());
    std::ranges::fill(field.subspan(text.size()), static_cast<u8>(fill));
  }

 private:
  std::span<u8, N> out_;
};

}  // namespace verbena
