#include "coll/reduce/copy.h"

#include <emmintrin.h>

namespace verbena::coll {
namespace {

constexpr u64 kLine = 64, kVector = 16;

}  // namespace

void copy_past_caches(u8* to, const u8* from, u64 bytes) {
  const u64 before = (kLine - reinterpret_cast<u64>(to) % kLine) % kLine;
  std::memcpy(to, from, before);
  to += before;
  from += before;
  const u64 lines = (bytes - before) / kLine;
  for (u64 line = 0; line < lines; ++line, to += kLine, from += kLine) {
    __m128i part[kLine / kVector];
    for (u64 i = 0; i < kLine / kVector; ++i)
      part[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * kVector));
    for (u64 i = 0; i < kLine / kVector; ++i)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i * kVector), part[i]);
  }
  _mm_sfence();
  std::memcpy(to, from, bytes - before - lines * kLine);
}

}  // namespace verbena::coll
