#include "host/local/frame_ring.h"

#include <cstring>

namespace verbena::host {
namespace {

constexpr u64 record_bytes(u32 size) { return sizeof(RingFrame) + ((u64{size} + 7) & ~u64{7}); }

u64 left_before_end(u64 position) { return FrameRing::kBytes - position % FrameRing::kBytes; }

}  // namespace

static_assert(sizeof(RingFrame) % 8 == 0 && FrameRing::kBytes % 8 == 0);

bool FrameRingWriter::has_room(u64 bytes) {
  if (end_ - read_ + bytes <= FrameRing::kBytes) return true;
  read_ = ring_.read_.load(std::memory_order_acquire);
  return end_ - read_ <= FrameRing::kBytes && end_ - read_ + bytes <= FrameRing::kBytes;
}

void FrameRingWriter::skip_to_start() {
  const RingFrame skip{.size = RingFrame::kSkip};
  std::memcpy(at(end_), &skip, sizeof skip.size);
  end_ += left_before_end(end_);
}

MutableBytes FrameRingWriter::add(const RingFrame& frame) {
  const u64 bytes = record_bytes(frame.size);
  before_last_ = end_;
  const u64 left = left_before_end(end_);
  if (left < bytes) {
    if (!has_room(left + bytes)) return {};
    skip_to_start();
  } else if (!has_room(bytes)) {
    return {};
  }
  u8* const record = at(end_);
  std::memcpy(record, &frame, sizeof frame);
  end_ += bytes;
  return {record + sizeof frame, frame.size};
}

bool FrameRingWriter::publish() {
  if (published_ == end_) return false;
  published_ = end_;
  ring_.written_.store(end_, std::memory_order_release);
  return true;
}

FrameRingReader::FrameRingReader(FrameRing& ring)
    : ring_(ring),
      begin_(ring.read_.load(std::memory_order_relaxed)),
      is_broken_(begin_ % 8 != 0),
      copy_(std::make_unique_for_overwrite<u8[]>(FrameRing::kMaxFrame)) {}

// The record at begin_. Everything about it is taken from the memory once, then checked.
bool FrameRingReader::next(RingFrame& out) {
  const u64 available = ring_.written_.load(std::memory_order_acquire) - begin_;
  if (available == 0) return false;
  const u8* const record = ring_.bytes_.data() + begin_ % FrameRing::kBytes;
  const u64 left = left_before_end(begin_);
  std::memcpy(&out.size, record, sizeof out.size);
  const bool skips = out.size == RingFrame::kSkip;
  if (!skips && out.size <= FrameRing::kMaxFrame && record_bytes(out.size) <= left) {
    const u32 size = out.size;
    std::memcpy(&out, record, sizeof out);
    out.size = size;
  } else if (!skips) {
    is_broken_ = true;
  }
  const u64 bytes = skips ? left : record_bytes(out.size);
  is_broken_ |= available > FrameRing::kBytes || bytes > available;
  return !is_broken_;
}

bool FrameRingReader::poll(IngressFrame& out) {
  RingFrame frame;
  if (is_broken_ || !next(frame)) return false;
  if (frame.size == RingFrame::kSkip) {
    begin_ += left_before_end(begin_);
    if (!next(frame)) {
      ring_.read_.store(begin_, std::memory_order_release);
      return false;
    }
    if (frame.size == RingFrame::kSkip) is_broken_ = true;
    if (is_broken_) return false;
  }
  const u8* const record = ring_.bytes_.data() + begin_ % FrameRing::kBytes;
  std::memcpy(copy_.get(), record + sizeof frame, frame.size);
  begin_ += record_bytes(frame.size);
  ring_.read_.store(begin_, std::memory_order_release);
  out = {.source = frame.source,
         .destination = frame.destination,
         .udp_source_port = frame.udp_source_port,
         .traffic_class = frame.traffic_class,
         .hop_limit = frame.hop_limit,
         .transport = {copy_.get(), frame.size}};
  return true;
}

}  // namespace verbena::host
