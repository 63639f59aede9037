// Frame: one Ethernet frame inside the simulated network, in one cache line. Its payload is counted
// and not carried: a simulated host's memory has no bytes. Frames live in a FramePool and are named
// by their place in it.
#pragma once

#include <array>

#include "base/types.h"

namespace verbena::fabric {

using FrameIndex = u32;
inline constexpr FrameIndex kNoFrame = ~u32{0};

// Traffic classes of IEEE 802.1Q, which PFC pauses one by one.
inline constexpr u32 kPriorities = 8;
// Returns the bit of a priority, or of an InfiniBand lane, in a set of them.
[[nodiscard]] constexpr u8 bit(u32 priority) { return static_cast<u8>(1u << priority); }

// Extent: how much of a frame has arrived when its arrival is reported.
enum class Extent : u8 {
  kWhole,
  kHead,  // a switch that cuts through may go on with it
  kRest,  // whole, after the head was told of
};

enum class FrameType : u8 {
  kRoCE,
  kTCP,          // a segment; `headers` as fabric/tcp/segment_codec.h has them
  kLive,         // a RoCE packet of a live process (live/live_packet.h); `headers` are a part of it
  kPause,        // PFC, between two neighbours
  kFlowControl,  // InfiniBand's credits, likewise
};

struct alignas(64) Frame {
  static constexpr std::size_t kHeaderBytes = 32;  // BTH with RETH and ImmDt

  FrameIndex next = kNoFrame;                 // in the list that holds it
  u32 source = 0, destination = 0;            // hosts
  u16 source_port = 0, destination_port = 0;  // UDP
  u16 size_bytes = 0;                         // on the wire, as links and buffers count it
  u16 payload_bytes = 0;
  u16 ingress = 0;       // the port of the switch that it came in by
  u16 pause_quanta = 0;  // kPause: of 512 bit times; 0 resumes. kFlowControl: FCCL
  FrameType type = FrameType::kRoCE;
  u8 priority = 0;       // the queue that it goes through; kPause: the one that it is about
  u8 traffic_class = 0;  // DSCP and ECN
  u8 header_bytes = 0;
  bool obeys_pause = true;  // of its sender: false for what goes ahead of a pause
  Extent extent = Extent::kWhole;
  bool notifies = false;                 // an acknowledgement that stands for a CNP too
  bool is_judged = false;                // by the rules of the link that it comes from
  std::array<u8, kHeaderBytes> headers;  // BTH and what follows it

  // No switch forwards it.
  [[nodiscard]] bool is_for_a_neighbour() const {
    return type == FrameType::kPause || type == FrameType::kFlowControl;
  }

  Frame() {}  // leaves `headers` uninitialized on purpose
};
static_assert(sizeof(Frame) == 64);

}  // namespace verbena::fabric
