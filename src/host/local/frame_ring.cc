#include "host/local/frame_ring.h"

#include <cstddef>
#include <cstring>

namespace verbena::host {
namespace {

constexpr u64 kLine = 64;
static_assert(FrameRing::kBytes % kLine == 0 && sizeof(RingFrame) < kLine);
static_assert(offsetof(RingFrame, length) == 0);

constexpr u64 record_bytes(u32 length) { return (u64{length} + kLine - 1) & ~(kLine - 1); }

constexpr u32 kMinLength = sizeof(RingFrame), kMaxLength = kMinLength + FrameRing::kMaxBody;

u64 left_before_end(u64 position) { return FrameRing::kBytes - position % FrameRing::kBytes; }

// A record may be looked at while its first word is written.
u32 load_length(const u8* record) {
  return __atomic_load_n(reinterpret_cast<const u32*>(record), __ATOMIC_ACQUIRE);
}
void store_length(u8* record, u32 length) {
  __atomic_store_n(reinterpret_cast<u32*>(record), length, __ATOMIC_RELEASE);
}

}  // namespace

// --- FrameRingWriter

// The one before may have ended between a record and its count.
FrameRingWriter::FrameRingWriter(FrameRing& ring)
    : ring_(ring), end_(ring.written_.load() & ~(kLine - 1)) {
  const u64 start = end_;
  while (end_ - start <= FrameRing::kBytes) {
    const u32 length = load_length(at(end_));
    if (length == 0) break;
    end_ += length == RingFrame::kSkip ? left_before_end(end_) : record_bytes(length);
  }
  published_ = end_;
}

bool FrameRingWriter::has_room(u64 bytes) {
  if (end_ - read_ + bytes <= FrameRing::kBytes) return true;
  read_ = ring_.read_.load(std::memory_order_acquire);
  return end_ - read_ <= FrameRing::kBytes && end_ - read_ + bytes <= FrameRing::kBytes;
}

// The first that is not published yet waits for publish().
void FrameRingWriter::set_length(u64 position, u32 length) {
  if (position == published_)
    first_length_ = length;
  else
    store_length(at(position), length);
}

// One line stays free, for the 0 behind the last record.
u8* FrameRingWriter::add(const RingFrame& frame, u32 body_bytes) {
  const u32 length = kMinLength + body_bytes;
  const u64 bytes = record_bytes(length), left = left_before_end(end_);
  const bool skips = left < bytes;
  if (!has_room((skips ? left : 0) + bytes + kLine)) return nullptr;
  before_last_ = end_;
  if (skips) {
    set_length(end_, RingFrame::kSkip);
    end_ += left;
  }
  u8* const record = at(end_);
  constexpr std::size_t kLengthBytes = sizeof frame.length;
  std::memcpy(record + kLengthBytes, reinterpret_cast<const u8*>(&frame) + kLengthBytes,
              sizeof frame - kLengthBytes);
  set_length(end_, length);
  end_ += bytes;
  return record + sizeof frame;
}

void FrameRingWriter::take_back() { end_ = before_last_; }

bool FrameRingWriter::publish() {
  if (published_ == end_) return false;
  store_length(at(end_), 0);
  store_length(at(published_), first_length_);
  published_ = end_;
  ring_.written_.store(end_, std::memory_order_relaxed);
  __builtin_prefetch(at(end_ + kLine), 1);
  return true;
}

// --- FrameRingReader

FrameRingReader::FrameRingReader(FrameRing& ring)
    : ring_(ring),
      begin_(ring.read_.load(std::memory_order_relaxed)),
      freed_(begin_),
      is_broken_(begin_ % kLine != 0) {}

u32 FrameRingReader::length_at(u64 position) const { return load_length(at(position)); }

bool FrameRingReader::is_sound(u32 length) const {
  return length >= kMinLength && length <= kMaxLength &&
         record_bytes(length) <= left_before_end(begin_);
}

void FrameRingReader::free() {
  if (freed_ == begin_) return;
  freed_ = begin_;
  ring_.read_.store(begin_, std::memory_order_release);
}

// Everything about a record is taken from the memory once, then checked.
bool FrameRingReader::poll(RingFrame& out, Bytes& body) {
  free();
  if (is_broken_) return false;
  u32 length = length_at(begin_);
  if (length == 0) return false;
  if (length == RingFrame::kSkip) {
    begin_ += left_before_end(begin_);
    length = length_at(begin_);
    if (length == 0) {
      free();
      return false;
    }
  }
  is_broken_ = !is_sound(length);
  if (is_broken_) return false;
  const u8* const record = at(begin_);
  std::memcpy(&out, record, sizeof out);
  out.length = length;
  body = {record + sizeof out, length - kMinLength};
  begin_ += record_bytes(length);
  return true;
}

}  // namespace verbena::host
