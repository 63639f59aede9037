// BurstAssembler: turns frames into as few datagram calls as the kernel allows: frames to one
// destination from one port, all of one size (the last may be shorter), go in one UDP_SEGMENT call.
// Each gets its ICRC, with the Identification that the kernel will give it: its place in the burst.
// Large pieces of payload are sent from where they lie; the rest is copied together.
// No system calls, no allocation after construction. Payload is the application's memory, which may
// not be there (memory/touch.h).
#pragma once

#include <sys/uio.h>

#include <array>
#include <memory>
#include <span>

#include "device/frame.h"
#include "host/links/source_ports.h"

namespace verbena::host {

// One datagram, or a run of them that the kernel cuts from one call.
struct Burst {
  SourcePort port;
  GID source, destination;
  u8 traffic_class = 0, hop_limit = 0;
  bool closed = false;       // its last segment is shorter: no more may follow
  u32 max_segment_size = 0;  // UDP payload that the path takes when cut; 0: never cut
  u32 segment_size = 0;      // UDP payload of all segments but the last
  u32 segments = 0;
  u32 bytes = 0;  // UDP payload of all segments together
  u32 first_iov = 0, iov_count = 0;
};

class BurstAssembler {
 public:
  static constexpr u32 kMaxBursts = 16;
  static constexpr u32 kMaxSegments = 64;        // the kernel's UDP_MAX_SEGMENTS, before 6.9
  static constexpr u32 kMaxBurstBytes = 65000;   // of UDP payload; IP's total length is 16 bits
  static constexpr u32 kEnoughBytes = 32 << 10;  // then sending early beats a longer batch
  static constexpr u32 kMinGatherBytes = 1024;   // below, copying is quicker than one more iovec

  BurstAssembler();

  enum class Append : u8 {
    kAdded,
    kFull,  // no room, or enough to be sent first. Never on an empty assembler
    kGone,  // its payload is not there any more
  };
  // Adds a frame, or changes nothing. `port` and `max_segment_size` as in Burst.
  [[nodiscard]] Append append(const EgressFrame& frame, const SourcePort& port,
                              u32 max_segment_size);

  [[nodiscard]] std::span<const Burst> bursts() const { return {bursts_.data(), burst_count_}; }
  [[nodiscard]] std::span<const iovec> iovs_of(const Burst& burst) const {
    return {iovs_.data() + burst.first_iov, burst.iov_count};
  }
  [[nodiscard]] bool empty() const { return burst_count_ == 0; }
  void clear();

 private:
  static constexpr u32 kStagingBytes = 128 << 10;
  static constexpr u32 kMaxIOVs = 512;

  Burst* joinable(const EgressFrame& frame, const SourcePort& port, u32 udp_size);
  Burst* begin(const EgressFrame& frame, const SourcePort& port, u32 max_segment_size,
               u32 udp_size);
  struct Mark;  // how far everything is filled
  Mark mark() const;
  void rewind(const Mark& mark);
  void write_segment(Burst& burst, const EgressFrame& frame);
  u8* stage(Burst& burst, u32 size);                   // room for `size` bytes, sent next
  void refer(Burst& burst, std::span<const u8> part);  // `part` is sent next, from where it lies

  std::unique_ptr<u8[]> staging_;
  u32 staged_ = 0;
  std::array<iovec, kMaxIOVs> iovs_;
  u32 iov_count_ = 0;
  std::array<Burst, kMaxBursts> bursts_;
  u32 burst_count_ = 0;
  u32 pending_bytes_ = 0;
};

// A segment's last four bytes: the ICRC, little-endian.
void store_icrc(u8* at, u32 icrc);

}  // namespace verbena::host
