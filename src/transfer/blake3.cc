#include "transfer/blake3.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <vector>

namespace verbena::transfer {
namespace {

constexpr std::size_t kBlockBytes = 64, kChunkBytes = 1024, kLanes = 16;
constexpr u32 kChunkStart = 1, kChunkEnd = 2, kParent = 4, kRoot = 8;

using Words = std::array<u32, 8>;
using BlockWords = std::array<u32, 16>;

constexpr Words kIV = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
// The order of the message words in each of the seven rounds.
constexpr u8 kSchedule[7][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                 {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8},
                                 {3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1},
                                 {10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6},
                                 {12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4},
                                 {9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7},
                                 {11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13}};

using Vector [[gnu::vector_size(4 * kLanes)]] = u32;

template <int bits, typename T>
[[gnu::always_inline]] inline void rotate_right(T& word) {
  word = (word >> bits) | (word << (32 - bits));
}

template <typename T>
[[gnu::always_inline]] inline void mix(T& a, T& b, T& c, T& d, const T& x, const T& y) {
  a = a + b + x;
  d ^= a;
  rotate_right<16>(d);
  c = c + d;
  b ^= c;
  rotate_right<12>(b);
  a = a + b + y;
  d ^= a;
  rotate_right<8>(d);
  c = c + d;
  b ^= c;
  rotate_right<7>(b);
}

// The seven rounds on the state v, of one block or of sixteen side by side.
template <typename T>
[[gnu::always_inline]] inline void rounds(T* v, const T* m) {
#pragma GCC unroll 7
  for (int round = 0; round < 7; ++round) {
    const u8* const s = kSchedule[round];
    mix(v[0], v[4], v[8], v[12], m[s[0]], m[s[1]]);
    mix(v[1], v[5], v[9], v[13], m[s[2]], m[s[3]]);
    mix(v[2], v[6], v[10], v[14], m[s[4]], m[s[5]]);
    mix(v[3], v[7], v[11], v[15], m[s[6]], m[s[7]]);
    mix(v[0], v[5], v[10], v[15], m[s[8]], m[s[9]]);
    mix(v[1], v[6], v[11], v[12], m[s[10]], m[s[11]]);
    mix(v[2], v[7], v[8], v[13], m[s[12]], m[s[13]]);
    mix(v[3], v[4], v[9], v[14], m[s[14]], m[s[15]]);
  }
}

// Swaps elements between the two rows of a pair: those of the first row whose index has the bit
// `step`, with those of the second row whose index lacks it.
template <u32 step>
[[gnu::always_inline]] inline void exchange(Vector* m) {
  Vector low{}, high{};
  for (u32 i = 0; i < kLanes; ++i) {
    low[i] = (i & step) != 0 ? kLanes + i - step : i;
    high[i] = (i & step) != 0 ? kLanes + i : i + step;
  }
#pragma GCC unroll 16
  for (u32 row = 0; row < kLanes; ++row) {
    if ((row & step) != 0) continue;
    const Vector a = m[row], b = m[row + step];
    m[row] = __builtin_shuffle(a, b, low);
    m[row + step] = __builtin_shuffle(a, b, high);
  }
}

// Row i of the result is word i of each of the sixteen rows.
[[gnu::always_inline]] inline void transpose(Vector* m) {
  exchange<8>(m);
  exchange<4>(m);
  exchange<2>(m);
  exchange<1>(m);
}

Words compress(const Words& chain, const BlockWords& block, u64 counter, u32 bytes, u32 flags) {
  u32 v[16] = {chain[0],
               chain[1],
               chain[2],
               chain[3],
               chain[4],
               chain[5],
               chain[6],
               chain[7],
               kIV[0],
               kIV[1],
               kIV[2],
               kIV[3],
               static_cast<u32>(counter),
               static_cast<u32>(counter >> 32),
               bytes,
               flags};
  rounds(v, block.data());
  Words next;
  for (std::size_t i = 0; i < 8; ++i) next[i] = v[i] ^ v[i + 8];
  return next;
}

BlockWords words_of(std::span<const u8> bytes) {
  BlockWords words{};
  if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

static_assert(std::endian::native == std::endian::little);

// The chaining value of one chunk; as the root's value if it is the only one.
Words hash_chunk(std::span<const u8> chunk, u64 counter, u32 last_flags) {
  Words chain = kIV;
  u32 flags = kChunkStart;
  do {
    const std::size_t bytes = std::min(chunk.size(), kBlockBytes);
    const bool is_last = chunk.size() <= kBlockBytes;
    if (is_last) flags |= kChunkEnd | last_flags;
    chain = compress(chain, words_of(chunk.first(bytes)), counter, static_cast<u32>(bytes), flags);
    chunk = chunk.subspan(bytes);
    flags = 0;
  } while (!chunk.empty());
  return chain;
}

// Sixteen inputs side by side, each of `blocks` blocks, one behind the other.
struct Batch {
  const u8* input = nullptr;
  std::size_t blocks = 0;
  u64 counter = 0, counter_step = 0;
  u32 flags = 0, first_flags = 0, last_flags = 0;  // of all blocks; of the first and last one, too
};

[[gnu::target_clones("avx512f", "avx2", "default")]] void hash_batch(const Batch& batch,
                                                                     Words* out) {
  Vector chain[8], low{}, high{};
  for (std::size_t i = 0; i < 8; ++i) chain[i] = Vector{} + kIV[i];
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const u64 counter = batch.counter + lane * batch.counter_step;
    low[lane] = static_cast<u32>(counter);
    high[lane] = static_cast<u32>(counter >> 32);
  }
  for (std::size_t block = 0; block < batch.blocks; ++block) {
    Vector m[16];
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      std::memcpy(&m[lane], batch.input + (lane * batch.blocks + block) * kBlockBytes,
                  sizeof m[lane]);
    transpose(m);
    const u32 flags = batch.flags | (block == 0 ? batch.first_flags : 0) |
                      (block + 1 == batch.blocks ? batch.last_flags : 0);
    Vector v[16] = {};
    for (std::size_t i = 0; i < 8; ++i) v[i] = chain[i];
    for (std::size_t i = 0; i < 4; ++i) v[8 + i] = Vector{} + kIV[i];
    v[12] = low;
    v[13] = high;
    v[14] = Vector{} + static_cast<u32>(kBlockBytes);
    v[15] = Vector{} + flags;
    rounds(v, m);
    for (std::size_t i = 0; i < 8; ++i) chain[i] = v[i] ^ v[i + 8];
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    for (std::size_t i = 0; i < 8; ++i) out[lane][i] = chain[i][lane];
}

Words parent_of(const Words& left, const Words& right, u32 flags) {
  BlockWords block;
  std::ranges::copy(left, block.begin());
  std::ranges::copy(right, block.begin() + 8);
  return compress(kIV, block, 0, kBlockBytes, kParent | flags);
}

// Writes the parents of 2 * `pairs` neighbours to the front, sixteen at a time.
void join_pairs(std::vector<Words>& level, std::size_t pairs) {
  std::size_t i = 0;
  for (; i + kLanes <= pairs; i += kLanes)  // reads all of its input before it writes
    hash_batch({.input = reinterpret_cast<const u8*>(&level[2 * i]), .blocks = 1, .flags = kParent},
               &level[i]);
  for (; i < pairs; ++i) level[i] = parent_of(level[2 * i], level[2 * i + 1], 0);
}

// Joins neighbours until one is left. The last one of an odd number rises as it is, which gives the
// tree whose left subtrees are the largest complete ones.
Words root_of(std::vector<Words>& level) {
  while (level.size() > 2) {
    const std::size_t pairs = level.size() / 2;
    join_pairs(level, pairs);
    if (level.size() % 2 != 0) level[pairs] = level.back();
    level.resize((level.size() + 1) / 2);
  }
  return parent_of(level[0], level[1], kRoot);
}

Hash bytes_of_words(const Words& words) {
  Hash hash;
  std::memcpy(hash.data(), words.data(), hash.size());
  return hash;
}

}  // namespace

Hash blake3(std::span<const u8> bytes) {
  if (bytes.size() <= kChunkBytes) return bytes_of_words(hash_chunk(bytes, 0, kRoot));
  const std::size_t chunks = (bytes.size() + kChunkBytes - 1) / kChunkBytes;
  std::vector<Words> level(chunks);
  std::size_t chunk = 0;
  for (; (chunk + kLanes) * kChunkBytes <= bytes.size(); chunk += kLanes)
    hash_batch({.input = bytes.data() + chunk * kChunkBytes,
                .blocks = kChunkBytes / kBlockBytes,
                .counter = chunk,
                .counter_step = 1,
                .first_flags = kChunkStart,
                .last_flags = kChunkEnd},
               &level[chunk]);
  for (; chunk < chunks; ++chunk) {
    const auto rest = bytes.subspan(chunk * kChunkBytes);
    level[chunk] = hash_chunk(rest.first(std::min(rest.size(), kChunkBytes)), chunk, 0);
  }
  return bytes_of_words(root_of(level));
}

std::string to_hex(const Hash& hash) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const u8 byte : hash) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::optional<Hash> hash_from_hex(std::string_view text) {
  Hash hash;
  if (text.size() != 2 * hash.size()) return std::nullopt;
  for (std::size_t i = 0; i < hash.size(); ++i) {
    const char* const digits = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, hash[i], 16);
    if (error != std::errc() || end != digits + 2) return std::nullopt;
  }
  return hash;
}

}  // namespace verbena::transfer
