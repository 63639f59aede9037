#include "check/memory_hash.h"

#include <bit>
#include <cstring>

#include "memory/touch.h"

namespace verbena::check {
namespace {

// Hashes four words at a time, each in a lane of its own: no multiplication waits for another.
class Hash {
 public:
  void add(const u8* data, std::size_t length) {
    for (; length >= sizeof lanes_; data += sizeof lanes_, length -= sizeof lanes_)
      for (std::size_t lane = 0; lane < kLanes; ++lane) mix(lane, data + lane * 8, 8);
    for (std::size_t lane = 0; length > 0; lane = (lane + 1) % kLanes) {
      const std::size_t part = length < 8 ? length : 8;
      mix(lane, data, part);
      data += part;
      length -= part;
    }
  }
  [[nodiscard]] u64 value() const {
    u64 all = 0;
    for (const u64 lane : lanes_) all = (std::rotl(all, 23) ^ lane) * kFactor;
    return all ^ (all >> 32);
  }

 private:
  static constexpr std::size_t kLanes = 4;
  static constexpr u64 kFactor = 0x9fb21c651e98df25;
  void mix(std::size_t lane, const u8* data, std::size_t length) {
    u64 word = 0;
    std::memcpy(&word, data, length);
    lanes_[lane] = std::rotl((lanes_[lane] ^ word) * kFactor, 29);
  }
  u64 lanes_[kLanes] = {1, 2, 3, 4};
};

void add_piece(Hash& hash, Bytes piece) {
  if (piece.size() <= kHashedWhole) return hash.add(piece.data(), piece.size());
  hash.add(piece.data(), kEdge);
  for (std::size_t at = kEdge; at + kStride <= piece.size() - kEdge; at += kStride)
    hash.add(piece.data() + at, kSample);
  hash.add(piece.last(kEdge).data(), kEdge);
}

}  // namespace

std::optional<u64> hash_of(std::span<const Bytes> pieces) {
  Hash hash;
  for (const Bytes piece : pieces)
    if (!piece.empty() && !touch([&hash, piece] { add_piece(hash, piece); })) return std::nullopt;
  return hash.value();
}

}  // namespace verbena::check
