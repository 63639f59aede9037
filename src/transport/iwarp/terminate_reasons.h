// Why a stream ends, as TERMINATE says it. RFC 5040, 4.8 (table 5); RFC 5041, 7 and 8; RFC 5044, 8;
// RFC 7306, 8.
#pragma once

#include "memory/protection_table.h"
#include "transport/stream_engine.h"

namespace verbena::iwarp {

namespace layer {
inline constexpr u8 kRDMAP = 0, kDDP = 1, kMPA = 2;
}

namespace reason {
// RDMAP
inline constexpr TerminateReason kLocalCatastrophic{layer::kRDMAP, 0, 0x00};
inline constexpr TerminateReason kInvalidSTag{layer::kRDMAP, 1, 0x00};
inline constexpr TerminateReason kBounds{layer::kRDMAP, 1, 0x01};
inline constexpr TerminateReason kAccessRights{layer::kRDMAP, 1, 0x02};
inline constexpr TerminateReason kOffsetWraps{layer::kRDMAP, 1, 0x04};
inline constexpr TerminateReason kRDMAPVersion{layer::kRDMAP, 2, 0x05};
inline constexpr TerminateReason kUnexpectedOpcode{layer::kRDMAP, 2, 0x06};
inline constexpr TerminateReason kStreamCatastrophic{layer::kRDMAP, 2, 0x07};
inline constexpr TerminateReason kCannotInvalidate{layer::kRDMAP, 2, 0x09};
inline constexpr TerminateReason kUnspecifiedOperation{layer::kRDMAP, 2, 0xff};
// DDP, tagged buffers
inline constexpr TerminateReason kTaggedInvalidSTag{layer::kDDP, 1, 0x00};
inline constexpr TerminateReason kTaggedBounds{layer::kDDP, 1, 0x01};
inline constexpr TerminateReason kTaggedOffsetWraps{layer::kDDP, 1, 0x03};
inline constexpr TerminateReason kTaggedVersion{layer::kDDP, 1, 0x04};
// DDP, untagged buffers
inline constexpr TerminateReason kInvalidQueue{layer::kDDP, 2, 0x01};
inline constexpr TerminateReason kNoBuffer{layer::kDDP, 2, 0x02};
inline constexpr TerminateReason kInvalidMSN{layer::kDDP, 2, 0x03};
inline constexpr TerminateReason kInvalidMO{layer::kDDP, 2, 0x04};
inline constexpr TerminateReason kMessageTooLong{layer::kDDP, 2, 0x05};
inline constexpr TerminateReason kUntaggedVersion{layer::kDDP, 2, 0x06};
// MPA
inline constexpr TerminateReason kBadCRC{layer::kMPA, 0, 0x02};
inline constexpr TerminateReason kBadLength{layer::kMPA, 0, 0x03};  // or marker
}  // namespace reason

// Returns the reason for a RDMA WRITE: DDP checks the buffer; RFC 5040, 5.2 leaves the right to
// RDMAP.
[[nodiscard]] TerminateReason reason_of_write(MemoryFault fault);
// Returns the reason for a READ request or an atomic.
[[nodiscard]] TerminateReason reason_of_read(MemoryFault fault);

}  // namespace verbena::iwarp
