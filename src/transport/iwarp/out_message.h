// OutMessage: one RDMAP message on its way out: what its DDP headers say, and where its payload is.
// RFC 5040, 4; RFC 5041, 4.
#pragma once

#include <array>

#include "base/check.h"
#include "wire/iwarp/rdmap.h"

namespace verbena::iwarp {

struct OutMessage {
  enum class Payload : u8 {
    kOwn,       // in `own`
    kRequest,   // of the send request `request`
    kResponse,  // in our memory, where a READ request has named it
  };
  static constexpr u64 kNoRequest = ~u64{0};

  RDMAPOpcode opcode = RDMAPOpcode::kWrite;
  Payload payload = Payload::kOwn;
  bool ends_request = false;                      // the last message of `request`
  u64 request = kNoRequest;                       // index in the send queue
  u32 length = 0;                                 // bytes of payload
  u32 stag = 0;                                   // tagged: where it goes
  u64 to = 0;                                     //
  u32 queue = 0, msn = 0;                         // untagged
  u32 invalidate_stag = 0;                        // SEND with Invalidate
  u32 source_stag = 0;                            // kResponse
  u64 source_offset = 0;                          //
  u32 max_segment = ~u32{0};                      // bytes of payload: far_payload.h
  std::array<u8, RDMAPAtomicRequest::kSize> own;  // the longest

  OutMessage() {}  // leaves `own` uninitialized on purpose: one is made per message

  // `header` is any type that has encode() and kSize.
  template <typename Header>
  void set_own(const Header& header) {
    payload = Payload::kOwn;
    length = Header::kSize;
    header.encode(std::span(own).template first<Header::kSize>());
  }
};

}  // namespace verbena::iwarp
