// RDMAP: the meaning of a DDP message. RFC 5040, 4; RFC 7306 (atomics, immediate data). Network
// order.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"

namespace verbena::iwarp {

// RFC 5040, 4.3, table 4; RFC 7306, 4.
enum class RDMAPOpcode : u8 {
  kWrite = 0,
  kReadRequest = 1,
  kReadResponse = 2,
  kSend = 3,
  kSendInvalidate = 4,
  kSendSolicited = 5,
  kSendSolicitedInvalidate = 6,
  kTerminate = 7,
  kImmediateData = 8,
  kImmediateDataSolicited = 9,
  kAtomicRequest = 10,
  kAtomicResponse = 11,
};

// Queues of untagged messages. RFC 5040, 5.1; RFC 7306, 5.1 for atomic responses.
inline constexpr u32 kSendQueueNumber = 0, kReadQueueNumber = 1, kTerminateQueueNumber = 2,
                     kAtomicResponseQueueNumber = 3;

[[nodiscard]] constexpr bool is_tagged(RDMAPOpcode opcode) {
  return opcode == RDMAPOpcode::kWrite || opcode == RDMAPOpcode::kReadResponse;
}

// The byte in DDP's header: | RV (2) | rsvd (2) | Opcode (4) |
inline constexpr u8 kRDMAPVersion = 1;
[[nodiscard]] constexpr u8 control_of(RDMAPOpcode opcode) {
  return static_cast<u8>(kRDMAPVersion << 6 | static_cast<u8>(opcode));
}
// Returns nullopt for another version, or an opcode that does not exist.
[[nodiscard]] std::optional<RDMAPOpcode> opcode_of(u8 control);

// The payload of a READ request. 4.4.
//   | sink STag (32) | sink TO (64) | size (32) | source STag (32) | source TO (64) |
struct RDMAPReadRequest {
  static constexpr std::size_t kSize = 28;  // bytes
  u32 sink_stag = 0;
  u64 sink_offset = 0;
  u32 length = 0;  // bytes
  u32 source_stag = 0;
  u64 source_offset = 0;
  [[nodiscard]] static std::optional<RDMAPReadRequest> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const RDMAPReadRequest&, const RDMAPReadRequest&) = default;
};

// RFC 7306, 5.2.1, table 3.
enum class AtomicOpcode : u8 { kFetchAdd = 0, kSwap = 1, kCompareSwap = 2 };

// The payload of an atomic request. RFC 7306, 5.2.1.
//   | rsvd (28) AOpCode (4) | request identifier (32) | STag (32) | TO (64) |
//   | add or swap data (64) | its mask (64) | compare data (64) | its mask (64) |
struct RDMAPAtomicRequest {
  static constexpr std::size_t kSize = 52;  // bytes
  AtomicOpcode opcode = AtomicOpcode::kFetchAdd;
  u32 identifier = 0;
  u32 stag = 0;
  u64 offset = 0;
  u64 add_or_swap = 0, add_or_swap_mask = ~u64{0};
  u64 compare = 0, compare_mask = ~u64{0};
  // Returns nullopt if it is short, or has an undefined opcode.
  [[nodiscard]] static std::optional<RDMAPAtomicRequest> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const RDMAPAtomicRequest&, const RDMAPAtomicRequest&) = default;
};

// The payload of an atomic response. RFC 7306, 5.2.2.
//   | request identifier (32) | original value (64) |
struct RDMAPAtomicResponse {
  static constexpr std::size_t kSize = 12;  // bytes
  u32 identifier = 0;
  u64 original = 0;
  [[nodiscard]] static std::optional<RDMAPAtomicResponse> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const RDMAPAtomicResponse&, const RDMAPAtomicResponse&) = default;
};

// The beginning of a TERMINATE's payload: why the stream ends. 4.8.
//   | layer (4) | type (4) | code (8) |M|D|R| rsvd (13) |
// Linux's siw counts the bits of a byte from the lowest: it swaps layer and type, and sets M, D
// and R in the low bits of the third byte. decode() reads both forms where M, D or R is set, and
// errors of MPA.
struct RDMAPTerminate {
  static constexpr std::size_t kSize = 4;           // bytes
  u8 layer = 0;                                     // 0 RDMAP, 1 DDP, 2 MPA
  u8 type = 0, code = 0;                            // by layer
  bool has_length = false, has_ddp_header = false;  // of the invalid segment, follow
  bool has_rdmap_header = false;
  [[nodiscard]] static std::optional<RDMAPTerminate> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const RDMAPTerminate&, const RDMAPTerminate&) = default;
};

}  // namespace verbena::iwarp
