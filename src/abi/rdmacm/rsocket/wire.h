// The messages between two rsockets. Facts of librdmacm's docs/rsocket, protocol version 1:
// private data of the CM's REQ and REP, then RDMA WRITE with immediate data, whose 32 bits are
//    31:29  operation      28:0  its value
// SGEs and iomaps that are written into the peer's memory have the peer's byte order; in private
// data they have the network's.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "abi/rdmacm/results.h"

namespace verbena::rdmacm::rsocket {

enum class Op : u8 {
  kData = 0,     // value: bytes written
  kWrite = 2,    // never sent: marks our own direct writes
  kCredits = 4,  // value: sequence number up to which the peer may send, 16 bits
  kIomap = 6,    // value: index of the entry written
  kControl = 7,  // value: a Control
};

enum class Control : u32 { kDisconnect = 0, kKeepalive = 1, kShutdown = 2 };

constexpr u32 message_of(Op op, u32 value) { return static_cast<u32>(op) << 29 | value; }
constexpr u32 message_of(Control control) {
  return message_of(Op::kControl, static_cast<u32>(control));
}
constexpr Op op_of(u32 message) { return static_cast<Op>(message >> 29); }
constexpr u32 value_of(u32 message) { return message & 0x1fff'ffff; }

struct RemoteSGE {
  u64 address = 0;
  u32 key = 0;
  u32 length = 0;  // bytes; of a target SGL: entries
};
static_assert(sizeof(RemoteSGE) == 16);

struct Iomap {
  u64 offset = 0;
  RemoteSGE buffer;
};
static_assert(sizeof(Iomap) == 24);

inline constexpr u32 kTargets = 2;  // entries of a target SGL; the iomaps follow them

struct ConnectionData {
  static constexpr std::size_t kSize = 40;
  bool big_endian = false;  // the sender's byte order
  bool has_iomaps = true;
  u16 credits = 0;
  u32 iomap_count = 0;
  RemoteSGE targets;
  RemoteSGE buffer;  // what the first target is

  // Returns nullopt if `in` is too short, or not version 1.
  [[nodiscard]] static std::optional<ConnectionData> decode(std::span<const u8> in);
  [[nodiscard]] std::array<u8, kSize> encode() const;
};

// Counts of iomaps travel in 8 bits: exact up to 128, then in steps of 256.
[[nodiscard]] u8 scaled(u32 count);
[[nodiscard]] u32 unscaled(u8 scaled);

[[nodiscard]] RemoteSGE swapped(const RemoteSGE& sge);

}  // namespace verbena::rdmacm::rsocket
