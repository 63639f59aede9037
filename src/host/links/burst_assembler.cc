#include "host/links/burst_assembler.h"

#include <cstring>

#include "base/check.h"
#include "memory/touch.h"
#include "wire/roce/icrc.h"

namespace verbena::host {
namespace {

// Headers, kMaxSGE parts, pad and ICRC, with a gathered part between any two.
constexpr u32 kMaxIOVsPerFrame = 2 * kMaxSGE + 1;

u32 udp_size_of(const EgressFrame& frame) {
  return static_cast<u32>(frame.transport_size() + kICRCSize);
}

}  // namespace

void store_icrc(u8* at, u32 icrc) {
  for (u32 i = 0; i < kICRCSize; ++i) at[i] = static_cast<u8>(icrc >> (8 * i));
}

BurstAssembler::BurstAssembler() : staging_(std::make_unique_for_overwrite<u8[]>(kStagingBytes)) {}

void BurstAssembler::clear() { staged_ = iov_count_ = burst_count_ = pending_bytes_ = 0; }

struct BurstAssembler::Mark {
  u32 staged, iov_count, burst_count;
  std::size_t last_iov_size;  // the last iovec may grow
  u32 last_burst_iov_count;   // and so may the last burst
};

BurstAssembler::Mark BurstAssembler::mark() const {
  return {.staged = staged_,
          .iov_count = iov_count_,
          .burst_count = burst_count_,
          .last_iov_size = iov_count_ == 0 ? 0 : iovs_[iov_count_ - 1].iov_len,
          .last_burst_iov_count = burst_count_ == 0 ? 0 : bursts_[burst_count_ - 1].iov_count};
}

void BurstAssembler::rewind(const Mark& mark) {
  staged_ = mark.staged;
  iov_count_ = mark.iov_count;
  burst_count_ = mark.burst_count;
  if (iov_count_ != 0) iovs_[iov_count_ - 1].iov_len = mark.last_iov_size;
  if (burst_count_ != 0) bursts_[burst_count_ - 1].iov_count = mark.last_burst_iov_count;
}

BurstAssembler::Append BurstAssembler::append(const EgressFrame& frame, const SourcePort& port,
                                              u32 max_segment_size) {
  const u32 udp_size = udp_size_of(frame);
  CHECK(udp_size <= kMaxTransportSize + kICRCSize);
  if (udp_size > kStagingBytes - staged_ || kMaxIOVsPerFrame > kMaxIOVs - iov_count_)
    return Append::kFull;
  const Mark before = mark();
  Burst* burst = joinable(frame, port, udp_size);
  if (burst == nullptr) burst = begin(frame, port, max_segment_size, udp_size);
  if (burst == nullptr) return Append::kFull;
  if (!touch([&] { write_segment(*burst, frame); })) {
    rewind(before);
    return Append::kGone;
  }
  burst->closed = udp_size < burst->segment_size;
  burst->bytes += udp_size;
  pending_bytes_ += udp_size;
  ++burst->segments;
  return Append::kAdded;
}

Burst* BurstAssembler::joinable(const EgressFrame& frame, const SourcePort& port, u32 udp_size) {
  if (burst_count_ == 0) return nullptr;
  Burst& last = bursts_[burst_count_ - 1];
  const bool fits = !last.closed && udp_size <= last.segment_size &&
                    last.segment_size <= last.max_segment_size && last.segments < kMaxSegments &&
                    last.bytes + udp_size <= kMaxBurstBytes;
  const bool same_path = last.port.fd == port.fd && last.traffic_class == frame.traffic_class &&
                         last.hop_limit == frame.hop_limit && last.destination == frame.destination;
  return fits && same_path ? &last : nullptr;
}

Burst* BurstAssembler::begin(const EgressFrame& frame, const SourcePort& port, u32 max_segment_size,
                             u32 udp_size) {
  if (burst_count_ == kMaxBursts || pending_bytes_ >= kEnoughBytes) return nullptr;
  Burst& burst = bursts_[burst_count_++];
  burst = {.port = port,
           .source = frame.source,
           .destination = frame.destination,
           .traffic_class = frame.traffic_class,
           .hop_limit = frame.hop_limit,
           .max_segment_size = max_segment_size,
           .segment_size = udp_size,
           .first_iov = iov_count_};
  return &burst;
}

void BurstAssembler::write_segment(Burst& burst, const EgressFrame& frame) {
  ICRC icrc({.source = burst.source,
             .destination = burst.destination,
             .udp_source_port = burst.port.number,
             .identification = static_cast<u16>(burst.segments)},
            frame.transport_size());
  u8* run = stage(burst, frame.headers_size);  // bytes staged in a row and not yet in the CRC
  std::memcpy(run, frame.headers.data(), frame.headers_size);
  u32 run_size = frame.headers_size;
  bool headers_done = false;
  const auto digest_run = [&] {
    const std::span<const u8> bytes(run, run_size);
    headers_done ? icrc.update(bytes) : icrc.headers(bytes);
    headers_done = true;
    run_size = 0;
  };
  for (u32 i = 0; i < frame.payload.count; ++i) {
    const Bytes part = frame.payload.parts[i];
    if (frame.payload_is_stable && part.size() >= kMinGatherBytes) {
      digest_run();
      refer(burst, part);
      icrc.update(part);
      run = staging_.get() + staged_;
    } else {
      std::memcpy(stage(burst, static_cast<u32>(part.size())), part.data(), part.size());
      run_size += static_cast<u32>(part.size());
    }
  }
  std::memset(stage(burst, frame.pad_count), 0, frame.pad_count);
  run_size += frame.pad_count;
  digest_run();
  store_icrc(stage(burst, kICRCSize), icrc.finish() ^ frame.icrc_flip);
}

u8* BurstAssembler::stage(Burst& burst, u32 size) {
  u8* at = staging_.get() + staged_;
  staged_ += size;
  if (burst.iov_count != 0) {
    iovec& last = iovs_[iov_count_ - 1];
    if (static_cast<u8*>(last.iov_base) + last.iov_len == at) {
      last.iov_len += size;
      return at;
    }
  }
  refer(burst, {at, size});
  return at;
}

void BurstAssembler::refer(Burst& burst, std::span<const u8> part) {
  iovs_[iov_count_++] = {.iov_base = const_cast<u8*>(part.data()), .iov_len = part.size()};
  ++burst.iov_count;
}

}  // namespace verbena::host
