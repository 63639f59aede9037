// BurstAssembler: turns frames into as few datagram calls as the kernel allows: frames to one
// destination from one port, all of one size (the last may be shorter), go in one UDP_SEGMENT call.
// Several bursts are open at once, so that QPs that take turns fill one each; frames of one path
// stay in order, but that a request may overtake an acknowledgement: it is longer, so the two fit
// in one burst only that way round. Each frame gets its ICRC, with the Identification that the
// kernel will give it: its burst's and its place in that. Where something
// encapsulates frames, they are copied into it. Large pieces of payload are sent from where they
// lie; the rest is copied together. No system calls, no allocation after construction. Payload is
// the application's memory, which may not be there (memory/touch.h).
#pragma once

#include <sys/uio.h>

#include <array>
#include <memory>
#include <span>

#include "device/port/frame.h"
#include "host/encryption/psp_sender.h"
#include "host/links/encapsulation.h"
#include "host/links/source_port.h"
#include "wire/roce/icrc.h"

namespace verbena::host {

// One datagram, or a run of them that the kernel cuts from one call.
struct Burst {
  SourcePort* port;  // nullptr: that of a link that makes the IP header itself
  GID source, destination;
  u16 udp_source_port = 0;
  u16 identification = 0;  // of the first segment
  u8 traffic_class = 0, hop_limit = 0;
  bool closed = false;           // its last segment is shorter: no more may follow
  bool yields = false;           // what comes next may go before all that is in it
  bool is_encapsulated = false;  // its segments have more than an ICRC around them
  u32 first_icrc_flip = 0;       // of what yields, as EgressFrame's
  u32 max_segment_size = 0;      // UDP payload that the path takes when cut; 0: never cut
  u32 segment_size = 0;          // UDP payload of all segments but the last
  u32 segments = 0;
  u32 bytes = 0;  // UDP payload of all segments together
  std::span<const iovec> iovs;
};

class BurstAssembler {
 public:
  static constexpr u32 kMaxBursts = 16;
  static constexpr u32 kMaxSegments = 64;        // the kernel's UDP_MAX_SEGMENTS, before 6.9
  static constexpr u32 kMaxBurstBytes = 65000;   // of UDP payload; IP's total length is 16 bits
  static constexpr u32 kEnoughBytes = 32 << 10;  // then sending early beats a longer batch
  static constexpr u32 kMaxIOVs = 192;           // of one burst
  static constexpr u32 kMinGatherBytes = 2048;   // below, copying is quicker than one more iovec

  BurstAssembler();

  enum class Append : u8 {
    kAdded,
    kFull,  // no room, or enough to be sent first. Never on an empty assembler
    kGone,  // its payload is not there any more
  };
  // Adds a frame, or of a train as many as there is room for in one burst, or changes nothing.
  // `port` and `max_segment_size` as in Burst. `done`: how many of a train have been added before;
  // with those added now. `around`: what encapsulates it, or nullptr.
  [[nodiscard]] Append append(const EgressFrame& frame, SourcePort* port, u32 max_segment_size,
                              u32& done, Encapsulation* around = nullptr);

  [[nodiscard]] std::span<const Burst> bursts() const { return {bursts_.data(), burst_count_}; }
  // Nothing in it refers to the application's memory, every frame may wait for others, and no burst
  // is full.
  [[nodiscard]] bool may_wait() const { return may_wait_; }
  void clear();

 private:
  struct Room {  // what one burst is made of
    std::array<iovec, kMaxIOVs> iovs;
    u32 iov_count = 0;
    u32 staged = 0;  // bytes of `staging`
    // Headers are written in their largest size, whatever follows.
    std::array<u8, kMaxTransportSize + kICRCSize + kMaxHeadersSize> staging;
  };

  static bool has_room(const Room& room, const EgressFrame& frame, u32 udp_size);
  static u32 packets_for(const Burst& burst, const Room& room, const EgressFrame& frame,
                         u32 udp_size);
  u32 find(const EgressFrame& frame, const SourcePort* port, u32 udp_size) const;
  u32 begin(const EgressFrame& frame, SourcePort* port, u32 max_segment_size, u32 udp_size);
  void take_back_last();
  bool follow(const Burst& burst, Room& room, const EgressFrame& frame, u32 from, u32 packets,
              Encapsulation* around);
  bool overtake(const Burst& burst, Room& room, const EgressFrame& frame, u32 packet,
                Encapsulation* around);
  void make_icrc_of_second(const Burst& burst, std::span<u8> segment);
  void write_segment(const Burst& burst, u32 place, Room& room, const EgressFrame& frame,
                     u32 packet, Encapsulation* around);
  void stage(Room& room, std::span<const u8> bytes);
  void refer(Room& room, std::span<const u8> part);  // `part` is sent next, from where it lies

  std::unique_ptr<std::array<Room, kMaxBursts>> rooms_;
  std::array<Burst, kMaxBursts> bursts_;
  EnvelopeCRC flow_;
  u32 burst_count_ = 0;
  u32 pending_bytes_ = 0;
  bool may_wait_ = true;
};

}  // namespace verbena::host
