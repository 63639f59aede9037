#include "host/local/frame_ring.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace verbena::host {
namespace {

constexpr u64 kLine = 64;
using Header = FrameRing::Header;
static_assert(FrameRing::kBytes % kLine == 0 && sizeof(Header) < kLine);
static_assert(offsetof(Header, length) == 0);

constexpr u64 record_bytes(u32 length) { return (u64{length} + kLine - 1) & ~(kLine - 1); }

constexpr u32 kMinLength = sizeof(Header), kMaxLength = kMinLength + FrameRing::kMaxTrainBody;

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
    end_ += length == FrameRing::kSkip ? left_before_end(end_) : record_bytes(length);
  }
  published_ = end_;
  if (ring_.read_.load(std::memory_order_acquire) == end_) return;
  addresses_ = ring_.addresses_;  // what is not read yet needs them
  addresses_known_ = FrameRing::kAddresses;
}

bool FrameRingWriter::has_room(u64 bytes) {
  if (end_ - read_ + bytes <= FrameRing::kBytes) return true;
  read_ = ring_.read_.load(std::memory_order_acquire);
  return end_ - read_ <= FrameRing::kBytes && end_ - read_ + bytes <= FrameRing::kBytes;
}

// Stores the length of a record. The length of the first unpublished record waits for publish().
void FrameRingWriter::set_length(u64 position, u32 length) {
  if (position == published_)
    first_length_ = length;
  else
    store_length(at(position), length);
}

// Returns false if the table is full and records that are not read yet may need it.
bool FrameRingWriter::find_addresses(const FrameRing::Addresses& wanted) {
  const auto known = std::span(addresses_).first(addresses_known_);
  if (addresses_at_ < addresses_known_ && known[addresses_at_] == wanted) return true;
  const auto found = std::ranges::find(known, wanted);
  addresses_at_ = static_cast<u16>(found - known.begin());
  if (found != known.end()) return true;
  if (addresses_known_ == FrameRing::kAddresses) {
    if (ring_.read_.load(std::memory_order_acquire) != end_) return false;
    addresses_known_ = addresses_at_ = 0;
  }
  addresses_[addresses_at_] = ring_.addresses_[addresses_at_] = wanted;
  ++addresses_known_;
  return true;
}

// One line stays free, for the 0 behind the last record.
u8* FrameRingWriter::add(const FrameRing::Addresses& addresses, u32 body_bytes) {
  if (has_line_) {
    line_.header.follows = 1;
    store_last();
  }
  const u32 length = kMinLength + body_bytes;
  const u64 bytes = record_bytes(length), left = left_before_end(end_);
  const bool skips = left < bytes;
  if (!has_room((skips ? left : 0) + bytes + kLine) || !find_addresses(addresses)) return nullptr;
  before_last_ = end_;
  if (skips) {
    set_length(end_, FrameRing::kSkip);
    end_ += left;
  }
  line_.header = {.length = length, .addresses = addresses_at_};
  line_at_ = end_;
  has_line_ = true;
  end_ += bytes;
  return bytes == kLine ? line_.body.data() : at(line_at_) + kMinLength;
}

void FrameRingWriter::take_back() {
  end_ = before_last_;
  has_line_ = false;
}

void FrameRingWriter::store_last() {
  constexpr std::size_t kLengthBytes = sizeof line_.header.length;
  const u8* const from = reinterpret_cast<const u8*>(&line_) + kLengthBytes;
  u8* const to = at(line_at_) + kLengthBytes;
  if (line_.header.length <= kLine)
    std::memcpy(to, from, kLine - kLengthBytes);
  else
    std::memcpy(to, from, kMinLength - kLengthBytes);
  set_length(line_at_, line_.header.length);
  has_line_ = false;
}

bool FrameRingWriter::publish() {
  if (published_ == end_) return false;
  store_length(at(end_), 0);
  if (has_line_) store_last();
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

// Everything about a record is taken from the memory once, then checked.
bool FrameRingReader::poll_and_keep(Record& out) {
  follows_ = false;
  if (is_broken_) return false;
  u32 length = length_at(begin_);
  if (length == 0) return false;
  if (length == FrameRing::kSkip) {
    begin_ += left_before_end(begin_);
    length = length_at(begin_);
    if (length == 0) return false;
  }
  is_broken_ = !is_sound(length);
  if (is_broken_) return false;
  const u8* const record = at(begin_);
  std::memcpy(&out.header, record, sizeof out.header);
  out.addresses = ring_.addresses_[out.header.addresses % FrameRing::kAddresses];
  follows_ = out.header.follows != 0;
  out.body = {record + sizeof out.header, length - kMinLength};
  begin_ += record_bytes(length);
  return true;
}

}  // namespace verbena::host
