// Finds the bytes of a send WQE: inline in the queue, or in registered memory, checked key by key.
#pragma once

#include "memory/payload.h"
#include "memory/sg_walk.h"
#include "transport/send_queue.h"

namespace verbena {

// Appends the bytes [offset, offset + length) of the message to `out`. Precondition: they lie
// inside of it. kLater: ask again. Any other fault is an
// error of the application: kLocalProtection.
[[nodiscard]] inline MemoryFault send_payload(const ProtectionTable& memory, PDId pd,
                                              const SendWQE& wqe, u64 offset, u32 length,
                                              PayloadList& out, CopyLane* lane) {
  if (!wqe.wr.inline_data) return gather(memory, pd, wqe.wr.sg_list, offset, length, out, lane);
  out.add({wqe.inline_bytes + offset, length});
  return MemoryFault::kNone;
}

// Returns the bytes between a payload of this size and the next multiple of 4. IBTA Vol 1, 9.2.3
// (PadCnt).
constexpr u8 pad_count_for(u32 payload_bytes) {
  return static_cast<u8>((4 - payload_bytes % 4) % 4);
}

}  // namespace verbena
