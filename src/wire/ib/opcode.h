// The BTH OpCode: 3 bits of transport service, 5 bits of operation. IBTA Vol 1, 9.2.1, table 38
// (RC, UC, RD, UD, XRC, manufacturer defined), A17.9.3 (CNP) and A19 (FLUSH, ATOMIC WRITE).
#pragma once

#include <array>

#include "base/types.h"

namespace verbena {

enum class Service : u8 { kRC = 0, kUC = 1, kRD = 2, kUD = 3, kCNP = 4, kXRC = 5, kOwn = 6 };

enum class Op : u8 {
  kSendFirst = 0x00,
  kSendMiddle = 0x01,
  kSendLast = 0x02,
  kSendLastWithImmediate = 0x03,
  kSendOnly = 0x04,
  kSendOnlyWithImmediate = 0x05,
  kRDMAWriteFirst = 0x06,
  kRDMAWriteMiddle = 0x07,
  kRDMAWriteLast = 0x08,
  kRDMAWriteLastWithImmediate = 0x09,
  kRDMAWriteOnly = 0x0a,
  kRDMAWriteOnlyWithImmediate = 0x0b,
  kRDMAReadRequest = 0x0c,
  kRDMAReadResponseFirst = 0x0d,
  kRDMAReadResponseMiddle = 0x0e,
  kRDMAReadResponseLast = 0x0f,
  kRDMAReadResponseOnly = 0x10,
  kAcknowledge = 0x11,
  kAtomicAcknowledge = 0x12,
  kCmpSwap = 0x13,
  kFetchAdd = 0x14,
  kSendLastWithInvalidate = 0x16,
  kSendOnlyWithInvalidate = 0x17,
  kFlush = 0x1c,
  kAtomicWrite = 0x1d,
};
// Service::kOwn, manufacturer defined, has kAcknowledge alone (sack_eth.h), for RC and XRC.
// Service::kCNP has the single operation 0x01 (OpCode 0x81); it is spelled kSendMiddle there.

struct Opcode {
  Service service = Service::kRC;
  Op op = Op::kSendFirst;
  static constexpr Opcode from_byte(u8 b) {
    return {static_cast<Service>(b >> 5), static_cast<Op>(b & 0x1f)};
  }
  constexpr u8 to_byte() const {
    return static_cast<u8>((static_cast<u8>(service) << 5) | static_cast<u8>(op));
  }
  friend constexpr bool operator==(Opcode, Opcode) = default;
};
inline constexpr Opcode kCNPOpcode{Service::kCNP, Op::kSendMiddle};    // 0x81
inline constexpr Opcode kSackOpcode{Service::kOwn, Op::kAcknowledge};  // 0xd1

// The headers that an operation carries, and its place in a message, by table 38. An operation of a
// single packet (READ Request, atomics, Acknowledge, CNP) is both first and last.
struct OpcodeTraits {
  bool valid = false;    // the (service, operation) pair exists
  bool request = false;  // otherwise a response (READ RESPONSE, ACK, ATOMIC ACK)
  bool first = false;    // first packet of a message (First or Only)
  bool last = false;     // last packet of a message (Last or Only)
  bool payload = false;  // may carry payload (a CNP: its 16 reserved bytes)
  bool reth = false, atomic_eth = false, aeth = false, atomic_ack_eth = false;
  bool deth = false, imm_dt = false, ieth = false, xrceth = false, feth = false;
  bool sack_eth = false;
  u8 headers_size = 0;  // bytes of BTH and all extended headers
};
extern const std::array<OpcodeTraits, 256> kOpcodeTraits;  // by the OpCode's byte

// A table lookup that never fails: an unknown OpCode has valid == false. So have all of the RD
// service, which nobody implements.
[[nodiscard]] inline const OpcodeTraits& traits_of(Opcode opcode) {
  return kOpcodeTraits[opcode.to_byte()];
}
// Returns the spec's name ("RC RDMA WRITE Only"), for people; "reserved" for an unknown one.
[[nodiscard]] const char* name_of(Opcode opcode);

}  // namespace verbena
