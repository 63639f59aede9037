// The bytes of a frame from BTH to end of pad, copied together. All links that copy a frame before
// they send it use this: raw Ethernet, AF_XDP, and PSP, which encrypts the copy in place.
#pragma once

#include <algorithm>
#include <cstring>

#include "device/port/frame.h"

namespace verbena::host {

// Writes packet number `packet` of the frame, of which a train has several. Returns the end. The
// payload is the application's memory, which may not be there: call it inside touch().
inline u8* write_transport(const EgressFrame& frame, u32 packet, u8* const begin) {
  std::memcpy(begin, frame.headers.data(), frame.headers_size);
  if (packet != 0) EgressFrame::make_headers_of(packet, begin);
  u8* end = begin + frame.headers_size;
  const auto add = [&](Bytes part) {
    std::memcpy(end, part.data(), part.size());
    end += part.size();
  };
  if (frame.packets != 1)
    add(frame.payload_of(packet));
  else
    for (const Bytes part : frame.payload.list()) add(part);
  return std::fill_n(end, frame.pad_count, u8{0});
}

}  // namespace verbena::host
