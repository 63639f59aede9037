// StreamAgreement: what both ends of a stream have agreed on before its first message. MPA's
// request and reply carry it. RFC 5044, 7.1; RFC 6581, 9.
#pragma once

#include <optional>

#include "base/time.h"
#include "base/types.h"

namespace verbena {

// The message that the initiator sends to say that it receives. RFC 6581, 9.
enum class ReadyToReceive : u8 { kNone, kWrite, kRead, kSend };

struct StreamAgreement {
  bool crc = true;
  bool sends_markers = false, receives_markers = false;  // RFC 5044, 4.3: as the receiver asks
  bool atomics_and_immediate = false;                    // RFC 7306: both ends have them
  ReadyToReceive to_send = ReadyToReceive::kNone;        // of the initiator
  // This end sends nothing (but `to_send`) before the peer's first message,
  bool awaits_ready = false;
  std::optional<Duration> ready_patience{};  // or so long after the beginning; nullopt: ever
  u16 ird = 0;               // READs and atomics of the peer that may be outstanding here
  u16 ord = 0;               // ours there
  u32 segment_bytes = 1448;  // of a TCP segment, at least 128: an FPDU fits one. RFC 5044, 5.1
};

}  // namespace verbena
