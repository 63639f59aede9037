// Far memory (memory/far_memory.h) as the payload of iWARP messages.
//   sent:     a segment has at most kCopySlotBytes of payload, so that it is one gather of the copy
//             queue. An FPDU whose bytes have begun to leave keeps the rest of them.
//   received: a step of the SegmentReader begins only while the lanes have room for all copies that
//             it may need. So no step is left half done.
#pragma once

#include "memory/copy_queue.h"
#include "memory/protection_table.h"

namespace verbena::iwarp {

// Copies that the placement of one segment may begin: each element of a receive begins a slot.
inline constexpr u32 kMaxSegmentCopies = kMaxSGE + 0x10000 / kCopySlotBytes;

// Returns the longest payload of a segment of a message from this memory.
[[nodiscard]] u32 max_segment_of(const ProtectionTable& memory, PDId pd, std::span<const SGE> list);
[[nodiscard]] u32 max_segment_of(const ProtectionTable& memory, const Resolved& place);

}  // namespace verbena::iwarp
