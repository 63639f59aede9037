#include "abi/rdmacm/rsocket/wire.h"

#include <endian.h>

#include <bit>
#include <cstring>

namespace verbena::rdmacm::rsocket {
namespace {

constexpr u8 kVersion = 1;
constexpr u8 kFlagBigEndian = 1, kFlagIomaps = 2;

struct Wire {
  u8 version, flags;
  u16 credits;
  std::array<u8, 3> reserved;
  u8 iomap_count;
  RemoteSGE targets, buffer;
};
static_assert(sizeof(Wire) == ConnectionData::kSize);

RemoteSGE to_network(const RemoteSGE& sge) {
  return std::endian::native == std::endian::big ? sge : swapped(sge);
}

}  // namespace

RemoteSGE swapped(const RemoteSGE& sge) {
  return {.address = __builtin_bswap64(sge.address),
          .key = __builtin_bswap32(sge.key),
          .length = __builtin_bswap32(sge.length)};
}

u8 scaled(u32 count) { return static_cast<u8>(count <= 128 ? count : 128 | (count >> 8 & 127)); }

u32 unscaled(u8 scaled) { return scaled <= 128 ? scaled : (scaled & 127U) << 8; }

std::optional<ConnectionData> ConnectionData::decode(std::span<const u8> in) {
  Wire wire;
  if (in.size() < sizeof wire) return std::nullopt;
  std::memcpy(&wire, in.data(), sizeof wire);
  if (wire.version != kVersion) return std::nullopt;
  return ConnectionData{.big_endian = (wire.flags & kFlagBigEndian) != 0,
                        .has_iomaps = (wire.flags & kFlagIomaps) != 0,
                        .credits = be16toh(wire.credits),
                        .iomap_count = unscaled(wire.iomap_count),
                        .targets = to_network(wire.targets),
                        .buffer = to_network(wire.buffer)};
}

std::array<u8, ConnectionData::kSize> ConnectionData::encode() const {
  const Wire wire{
      .version = kVersion,
      .flags = static_cast<u8>((big_endian ? kFlagBigEndian : 0) | (has_iomaps ? kFlagIomaps : 0)),
      .credits = htobe16(credits),
      .reserved = {},
      .iomap_count = scaled(iomap_count),
      .targets = to_network(targets),
      .buffer = to_network(buffer)};
  std::array<u8, kSize> out;
  std::memcpy(out.data(), &wire, sizeof wire);
  return out;
}

}  // namespace verbena::rdmacm::rsocket
