#include "transport/iwarp/segment_reader.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/check.h"

namespace verbena::iwarp {
namespace {

constexpr u32 kCRCBytes = 4;
constexpr u32 kDecisive = kMPALengthBytes + 1;  // the length, and whether the segment is tagged
constexpr u8 kTagged = 0x80;

}  // namespace

void SegmentReader::begin(CRCUse crc, bool has_markers) {
  crc_use_ = crc;
  marked_.reset();
  if (has_markers) marked_.emplace(crc);
  phase_ = Phase::kWhole;
  kept_ = 0;
}

SegmentReader::Step SegmentReader::read(Bytes& in) {
  if (marked_) return read_marked(in);
  switch (phase_) {
    case Phase::kWhole: return kept_ == 0 ? read_whole(in) : read_kept(in);
    case Phase::kParts: return read_parts(in);
    case Phase::kTail: return read_tail(in);
  }
  CHECK_UNREACHABLE();
}

SegmentReader::Step SegmentReader::read_marked(Bytes& in) {
  switch (marked_->read(in)) {
    case MarkedReader::Step::kMore: return Step::kMore;
    case MarkedReader::Step::kBadMarker: return Step::kBadMarker;
    case MarkedReader::Step::kBadCRC: return Step::kBadCRC;
    case MarkedReader::Step::kFPDU: break;
  }
  const Bytes fpdu = marked_->fpdu();
  const std::optional<u32> end = header_end(fpdu);
  if (!end || fpdu.size() < *end) return Step::kBadLength;
  if (const Step bad = parse_header(fpdu); bad != Step::kMore) return bad;
  offset_ = 0;
  payload_ = fpdu.subspan(*end, header_.payload_bytes);
  return Step::kSegment;
}

// Where the DDP header ends; nullopt: not known yet.
std::optional<u32> SegmentReader::header_end(Bytes fpdu) const {
  if (fpdu.size() < kDecisive) return std::nullopt;
  return kMPALengthBytes +
         ((fpdu[kMPALengthBytes] & kTagged) != 0 ? kTaggedHeader : kUntaggedHeader);
}

// Nothing is kept: the segment begins with `in`.
SegmentReader::Step SegmentReader::read_whole(Bytes& in) {
  const std::optional<u32> end = header_end(in);
  if (!end || in.size() < *end) {
    keep(in, kBuffer);
    return Step::kMore;
  }
  if (const Step bad = parse_header(in); bad != Step::kMore) return bad;
  const u32 size = fpdu_bytes(header_.ulpdu_bytes);
  if (in.size() >= size) {
    const Bytes fpdu = in.first(size);
    in = in.subspan(size);
    return finish(fpdu);
  }
  if (header_.payload_bytes >= kStreamed) {
    const Bytes head = in.first(*end);
    in = in.subspan(*end);
    return begin_parts(head);
  }
  keep(in, size);
  return Step::kMore;
}

SegmentReader::Step SegmentReader::read_kept(Bytes& in) {
  keep(in, kDecisive);
  const std::optional<u32> end = header_end({buffer_.get(), kept_});
  if (!end) return Step::kMore;
  keep(in, *end);
  if (kept_ < *end) return Step::kMore;
  const Bytes kept(buffer_.get(), kept_);
  if (const Step bad = parse_header(kept); bad != Step::kMore) return bad;
  if (header_.payload_bytes >= kStreamed) {
    kept_ = 0;
    return begin_parts(kept);
  }
  const u32 size = fpdu_bytes(header_.ulpdu_bytes);
  keep(in, size);
  if (kept_ < size) return Step::kMore;
  kept_ = 0;
  return finish({buffer_.get(), size});
}

// kMore: it is valid. Precondition: it is whole.
SegmentReader::Step SegmentReader::parse_header(Bytes fpdu) {
  const u16 length = load_be16(fpdu.data());
  header_.tagged = (fpdu[kMPALengthBytes] & kTagged) != 0;
  header_.ulpdu_bytes = length;
  if (length < header_.header_bytes()) return Step::kBadLength;
  header_.payload_bytes = length - header_.header_bytes();
  const Bytes ddp = fpdu.subspan(kMPALengthBytes, header_.header_bytes());
  std::ranges::copy(ddp, header_.bytes.begin());
  if (header_.tagged) {
    const std::optional<DDPTagged> tagged = DDPTagged::decode(ddp);
    if (tagged) header_.to_buffer = *tagged;
    return tagged ? Step::kMore : Step::kBadVersion;
  }
  const std::optional<DDPUntagged> untagged = DDPUntagged::decode(ddp);
  if (untagged) header_.to_queue = *untagged;
  return untagged ? Step::kMore : Step::kBadVersion;
}

SegmentReader::Step SegmentReader::finish(Bytes fpdu) {
  if (FPDUView::decode(fpdu, crc_use_).status != FPDUView::Status::kWhole) return Step::kBadCRC;
  offset_ = 0;
  payload_ = fpdu.subspan(kMPALengthBytes + header_.header_bytes(), header_.payload_bytes);
  return Step::kSegment;
}

SegmentReader::Step SegmentReader::begin_parts(Bytes head) {
  phase_ = Phase::kParts;
  parts_left_ = header_.payload_bytes - kTail;
  next_offset_ = 0;
  crc_ = CRC32C();
  if (crc_use_ == CRCUse::kUsed) crc_.add(head);
  return Step::kBegin;
}

SegmentReader::Step SegmentReader::read_parts(Bytes& in) {
  if (in.empty()) return Step::kMore;
  payload_ = in.first(std::min<std::size_t>(in.size(), parts_left_));
  in = in.subspan(payload_.size());
  offset_ = next_offset_;
  on_placed(payload_);
  return Step::kPart;
}

void SegmentReader::on_placed(Bytes payload) {
  CHECK(payload.size() <= parts_left_);
  if (crc_use_ == CRCUse::kUsed) crc_.add(payload);
  parts_left_ -= static_cast<u32>(payload.size());
  next_offset_ += static_cast<u32>(payload.size());
  if (parts_left_ == 0) phase_ = Phase::kTail;
}

SegmentReader::Step SegmentReader::read_tail(Bytes& in) {
  const u32 ulpdu = header_.ulpdu_bytes;
  const u32 size = kTail + (fpdu_bytes(ulpdu) - kMPALengthBytes - ulpdu);
  keep(in, size);
  if (kept_ < size) return Step::kMore;
  kept_ = 0;
  phase_ = Phase::kWhole;
  const Bytes tail(buffer_.get(), size);
  if (crc_use_ == CRCUse::kUsed) {
    crc_.add(tail.first(size - kCRCBytes));
    if (!crc_.matches(tail.last<kCRCBytes>())) return Step::kBadCRC;
  }
  offset_ = next_offset_;
  payload_ = tail.first(kTail);
  return Step::kEnd;
}

// Until `up_to` bytes are kept, or `in` is empty.
void SegmentReader::keep(Bytes& in, u32 up_to) {
  if (kept_ >= up_to) return;
  if (buffer_ == nullptr) buffer_.reset(new u8[kBuffer]);
  const std::size_t count = std::min<std::size_t>(in.size(), up_to - kept_);
  std::memcpy(buffer_.get() + kept_, in.data(), count);
  kept_ += static_cast<u32>(count);
  in = in.subspan(count);
}

}  // namespace verbena::iwarp
