// FPDUPipe: the bytes that one end of a simulated TCP connection sends, for the other end. Frames
// and tcp::Segment count bytes and carry none, so the bytes pass beside them. Of payload, the
// pipe has only the length. Threads: the sender's domain puts, the receiver's takes, without locks:
// the receiver takes only bytes that TCP has delivered. They were put in an earlier window
// (windows.h), and what happens between two windows orders the accesses.
#pragma once

#include <array>
#include <memory>

#include "base/types.h"
#include "memory/sge.h"

namespace verbena::fabric {

class FPDUPipe {
 public:
  FPDUPipe() : first_(std::make_unique<Chunk>()), last_(first_.get()) {}

  // --- the sender's side
  void put(Bytes bytes);  // of headers and trailers, at most kMostBytes
  void put_payload(u32 bytes);
  static constexpr u32 kMostBytes = 64;

  // --- the receiver's side
  struct Piece {
    Bytes bytes;      // valid until the next take()
    u32 payload = 0;  // or so many bytes of payload
  };
  // Takes the next bytes, at most `most` and not 0. Precondition: as many were put.
  [[nodiscard]] Piece take(u64 most);

 private:
  struct Record {
    u32 bytes = 0;  // 0: the next record is in the next chunk
    bool is_payload = false;
  };
  struct Chunk {
    std::array<u8, 4096> bytes;
    std::unique_ptr<Chunk> next;
  };
  [[nodiscard]] static constexpr u32 size_of(u32 bytes) {
    return static_cast<u32>(sizeof(Record)) + bytes;
  }
  void put_record(const Record& record, Bytes bytes);
  [[nodiscard]] Record next_record();

  std::unique_ptr<Chunk> first_;  // that the receiver reads
  Chunk* last_;                   // that the sender fills
  u32 read_ = 0, filled_ = 0;     // bytes of these
  u32 taken_ = 0;                 // of the record at `read_`
};

}  // namespace verbena::fabric
