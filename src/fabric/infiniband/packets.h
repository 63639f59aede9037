// Operations of InfiniBand on frames of the simulation: flow control packets, and the FECN bit of
// the BTH.
#pragma once

#include "fabric/frame_pool.h"
#include "fabric/infiniband/link_credits.h"
#include "fabric/switch_node.h"
#include "wire/ib/lid_address.h"

namespace verbena::fabric {

// For the neighbour of the port whose credits these are. IBTA 7.9.4.
[[nodiscard]] inline FrameIndex make_flow_control(FramePool& frames, u32 lane,
                                                  LinkCredits& credits) {
  const FrameIndex index = frames.take();
  Frame& frame = frames[index];
  frame.type = FrameType::kFlowControl;
  frame.priority = static_cast<u8>(lane);
  frame.pause_quanta = credits.tell(lane);
  frame.size_bytes = kFlowControlBytes;
  frame.payload_bytes = 0;
  return index;
}
[[nodiscard]] inline u16 credit_limit_of(const Frame& frame) { return frame.pause_quanta; }

// Returns the DLID of a packet of a live process. UDP ports have no meaning here.
[[nodiscard]] inline u16 dlid_of(const Frame& frame) { return frame.destination_port; }
inline void set_dlid(Frame& frame, u16 dlid) { frame.destination_port = dlid; }
[[nodiscard]] inline PacketCount::Cast cast_of(const Frame& frame) {
  const bool is_multicast = frame.type == FrameType::kLive && dlid_of(frame) >= kFirstMulticastLID;
  return is_multicast ? PacketCount::Cast::kMulticast : PacketCount::Cast::kUnicast;
}
// Frame::ingress of a copy that holds no place at an input.
inline constexpr u16 kNoIngress = 0xffff;

// IBTA 9.2: the first bit of the BTH's fifth byte.
inline constexpr std::size_t kFECNAt = 4;
inline constexpr u8 kFECNBit = 0x80;
inline void set_fecn(Frame& frame) { frame.headers[kFECNAt] |= kFECNBit; }
[[nodiscard]] inline bool has_fecn(const Frame& frame) {
  return (frame.headers[kFECNAt] & kFECNBit) != 0;
}

}  // namespace verbena::fabric
