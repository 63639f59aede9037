// SegmentReader: takes DDP segments from a TCP stream: MPA's framing and CRC. RFC 5044, 4 and 5.
// Sans-IO. The bytes come in any pieces. A segment that is whole in one piece, or short, comes out
// whole, after the check of its CRC. A long one (kStreamed bytes of payload and more) that is cut
// comes out as kBegin, kPart ..., kEnd, so that its payload is placed as it arrives. Its last kTail
// bytes come with kEnd, after the check of the CRC, so that no program that waits for the last
// byte sees it before. Invariant: at most kBuffer bytes are kept, in memory that the first
// segment that is cut allocates: an idle connection needs none.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "memory/sge.h"
#include "wire/iwarp/crc32c.h"
#include "wire/iwarp/ddp.h"
#include "wire/iwarp/markers.h"

namespace verbena::iwarp {

struct SegmentHeader {
  bool tagged = false;
  DDPTagged to_buffer{};   // if tagged
  DDPUntagged to_queue{};  // if not
  u32 payload_bytes = 0;
  u16 ulpdu_bytes = 0;                      // as MPA says
  std::array<u8, kUntaggedHeader> bytes{};  // as received

  [[nodiscard]] bool last() const { return tagged ? to_buffer.last : to_queue.last; }
  [[nodiscard]] u8 control() const { return tagged ? to_buffer.control : to_queue.control; }
  [[nodiscard]] u32 header_bytes() const { return tagged ? kTaggedHeader : kUntaggedHeader; }
};

class SegmentReader {
 public:
  static constexpr u32 kStreamed = 4096, kTail = 64;

  enum class Step : u8 {
    kMore,        // all bytes are taken; the segment goes on in those that follow
    kSegment,     // header() and payload(), from offset() 0
    kBegin,       // header()
    kPart,        // payload(), at offset() of the segment's
    kEnd,         // the same: the last
    kBadLength,   // the stream has no meaning from here on
    kBadVersion,  // of DDP: header() has `tagged` only
    kBadCRC,
    kBadMarker,
  };

  void begin(CRCUse crc, bool has_markers = false);
  // Takes bytes off the front of `in`, until there is something to say.
  [[nodiscard]] Step read(Bytes& in);
  [[nodiscard]] const SegmentHeader& header() const { return header_; }
  [[nodiscard]] Bytes payload() const { return payload_; }
  [[nodiscard]] u32 offset() const { return offset_; }
  // No segment is begun.
  [[nodiscard]] bool is_at_boundary() const {
    return phase_ == Phase::kWhole && kept_ == 0 && (!marked_ || marked_->is_at_boundary());
  }

  // Between kBegin and kEnd: so many bytes of payload may be taken by on_placed() instead.
  [[nodiscard]] u32 placeable() const { return phase_ == Phase::kParts ? parts_left_ : 0; }
  [[nodiscard]] u32 next_offset() const { return next_offset_; }
  void on_placed(Bytes payload);

 private:
  enum class Phase : u8 { kWhole, kParts, kTail };
  static constexpr u32 kBuffer = 2 + kUntaggedHeader + kStreamed + 8;

  [[nodiscard]] std::optional<u32> header_end(Bytes fpdu) const;
  [[nodiscard]] Step read_whole(Bytes& in);
  [[nodiscard]] Step read_kept(Bytes& in);
  [[nodiscard]] Step read_marked(Bytes& in);
  [[nodiscard]] Step parse_header(Bytes fpdu);
  [[nodiscard]] Step finish(Bytes fpdu);
  [[nodiscard]] Step begin_parts(Bytes head);
  [[nodiscard]] Step read_parts(Bytes& in);
  [[nodiscard]] Step read_tail(Bytes& in);
  void keep(Bytes& in, u32 up_to);

  CRCUse crc_use_ = CRCUse::kUsed;
  std::optional<MarkedReader> marked_;  // of a stream with markers, whose segments come out whole
  Phase phase_ = Phase::kWhole;
  SegmentHeader header_;
  Bytes payload_;
  u32 offset_ = 0, next_offset_ = 0;
  u32 parts_left_ = 0;
  CRC32C crc_;
  std::unique_ptr<u8[]> buffer_;
  u32 kept_ = 0;
};

}  // namespace verbena::iwarp
