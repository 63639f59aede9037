// The frame codec: how a frame becomes bytes on any link: BTH .. end of pad, the ICRC, and where
// the link encrypts, PSP around both. UDP sockets, raw Ethernet and AF_XDP use it; encryption is
// its last stage. The links differ in the headers that they put before the result, and in whether
// they send large payload from where it lies: that is the sink's choice.
#pragma once

#include <concepts>
#include <cstring>
#include <span>

#include "device/port/frame.h"
#include "host/encryption/psp_sender.h"
#include "host/links/encapsulation.h"
#include "wire/roce/icrc.h"

namespace verbena::host {

// Where the bytes of a frame go, in their order.
template <typename Sink>
concept FrameSink = requires(Sink& sink, Bytes part, std::span<u8> written) {
  // Whether `part` is sent from where it lies. Otherwise the codec copies it.
  { sink.gathers(part) } -> std::same_as<bool>;
  sink.refer(part);
  sink.take(written);  // bytes that the codec wrote, all in a row
};

// A sink of links whose frames are all in one place.
struct OnePieceSink {
  std::size_t size = 0;
  static bool gathers(Bytes /*part*/) { return false; }
  void refer(Bytes /*part*/) {}
  void take(std::span<u8> written) { size += written.size(); }
};

// Room that a frame of this size needs, without what the link puts before it.
[[nodiscard]] inline std::size_t encoded_room(std::size_t transport_size,
                                              const Encapsulation* around) {
  return std::max(transport_size, kMaxHeadersSize) + kICRCSize +
         (around == nullptr ? 0 : around->overhead());
}

// Writes packet number `packet` of the frame, of which a train has several, to `begin`. `icrc` has
// seen the envelope. The payload is the application's memory, which may not be there: call this
// inside touch().
template <FrameSink Sink>
void encode_frame(const EgressFrame& frame, u32 packet, ICRC icrc, u8* const begin, Sink& sink) {
  u8* piece = begin;
  std::memcpy(piece, frame.headers.data(), kMaxHeadersSize);  // a fixed size is quicker
  if (packet != 0) EgressFrame::make_headers_of(packet, piece);
  u8* end = piece + frame.headers_size;
  bool headers_done = false;
  const auto digest_piece = [&] {
    const std::span<const u8> bytes(piece, end);
    headers_done ? icrc.update(bytes) : icrc.headers(bytes);
    headers_done = true;
  };
  const auto add = [&](Bytes part) {
    if (sink.gathers(part)) {
      digest_piece();
      sink.take({piece, end});
      piece = end;
      sink.refer(part);
      icrc.update(part);
    } else {
      std::memcpy(end, part.data(), part.size());
      end += part.size();
    }
  };
  frame.for_each_part(packet, add);
  std::memset(end, 0, kICRCSize);  // the pad is shorter
  end += frame.pad_count;
  digest_piece();
  store_icrc(icrc.finish() ^ frame.icrc_flip, std::span<u8, kICRCSize>(end, kICRCSize));
  end += kICRCSize;
  sink.take({piece, end});
}

// As encode_frame(), with `around` about the packet. It is in one piece, since it is encrypted in
// place. Returns all that was written.
inline std::span<u8> encode_encapsulated(const EgressFrame& frame, u32 packet, ICRC icrc,
                                         Encapsulation& around, u16 udp_source_port,
                                         u8* const begin) {
  OnePieceSink inside;
  encode_frame(frame, packet, icrc, begin + around.head_bytes(), inside);
  const std::span<u8> written(begin, around.overhead() + inside.size);
  around.finish(frame, udp_source_port, written);
  return written;
}

}  // namespace verbena::host
