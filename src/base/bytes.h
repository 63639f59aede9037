// Readers and writers of big-endian (network order) fields at offsets that are checked at compile
// time. Reader<N> and Writer<N> see exactly N bytes; a field that would cross the end does not
// compile.
#pragma once

#include <cstring>
#include <span>

#include "base/types.h"

namespace verbena {

constexpr u16 load_be16(const u8* p) { return static_cast<u16>((u16{p[0]} << 8) | p[1]); }
constexpr u32 load_be24(const u8* p) { return (u32{p[0]} << 16) | (u32{p[1]} << 8) | p[2]; }
constexpr u32 load_be32(const u8* p) { return (u32{load_be16(p)} << 16) | load_be16(p + 2); }
constexpr u64 load_be64(const u8* p) { return (u64{load_be32(p)} << 32) | load_be32(p + 4); }
constexpr void store_be16(u8* p, u16 v) {
  p[0] = static_cast<u8>(v >> 8);
  p[1] = static_cast<u8>(v);
}
constexpr void store_be24(u8* p, u32 v) {
  p[0] = static_cast<u8>(v >> 16);
  p[1] = static_cast<u8>(v >> 8);
  p[2] = static_cast<u8>(v);
}
constexpr void store_be32(u8* p, u32 v) {
  store_be16(p, static_cast<u16>(v >> 16));
  store_be16(p + 2, static_cast<u16>(v));
}
constexpr void store_be64(u8* p, u64 v) {
  store_be32(p, static_cast<u32>(v >> 32));
  store_be32(p + 4, static_cast<u32>(v));
}

template <std::size_t N>
class Reader {
 public:
  constexpr explicit Reader(std::span<const u8, N> in) : in_(in) {}
  template <std::size_t At>
  constexpr u8 get8() const {
    static_assert(At + 1 <= N);
    return in_[At];
  }
  template <std::size_t At>
  constexpr u16 get16() const {
    static_assert(At + 2 <= N);
    return load_be16(in_.data() + At);
  }
  template <std::size_t At>
  constexpr u32 get24() const {
    static_assert(At + 3 <= N);
    return load_be24(in_.data() + At);
  }
  template <std::size_t At>
  constexpr u32 get32() const {
    static_assert(At + 4 <= N);
    return load_be32(in_.data() + At);
  }
  template <std::size_t At>
  constexpr u64 get64() const {
    static_assert(At + 8 <= N);
    return load_be64(in_.data() + At);
  }

 private:
  std::span<const u8, N> in_;
};

template <std::size_t N>
class Writer {
 public:
  constexpr explicit Writer(std::span<u8, N> out) : out_(out) {}
  template <std::size_t At>
  constexpr void put8(u8 v) {
    static_assert(At + 1 <= N);
    out_[At] = v;
  }
  template <std::size_t At>
  constexpr void put16(u16 v) {
    static_assert(At + 2 <= N);
    store_be16(out_.data() + At, v);
  }
  template <std::size_t At>
  constexpr void put24(u32 v) {
    static_assert(At + 3 <= N);
    store_be24(out_.data() + At, v);
  }
  template <std::size_t At>
  constexpr void put32(u32 v) {
    static_assert(At + 4 <= N);
    store_be32(out_.data() + At, v);
  }
  template <std::size_t At>
  constexpr void put64(u64 v) {
    static_assert(At + 8 <= N);
    store_be64(out_.data() + At, v);
  }

 private:
  std::span<u8, N> out_;
};

}  // namespace verbena
