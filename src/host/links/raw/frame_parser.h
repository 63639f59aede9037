// FrameParser: takes a received Ethernet frame apart: RoCEv2 in IPv4 or IPv6, or RoCEv1. One frame
// may hold several packets of RoCEv2 that the kernel joined (GRO), or that a sender in this machine
// never cut (GSO); each comes out on its own.
#pragma once

#include <span>

#include "device/port/frame.h"
#include "wire/roce/icrc.h"

namespace verbena::host {

class FrameParser {
 public:
  // `udp_port`: of RoCEv2, or of PSP, whose packets come out as they are.
  explicit FrameParser(u16 udp_port = kRoCEv2Port) : udp_port_(udp_port) {}

  // `segment_size` is the UDP payload of all packets in the frame but the last, in bytes; 0 if it
  // holds one packet. The bytes are valid until the last poll(). A frame that is not RoCE gives no
  // packet.
  void open(std::span<const u8> frame, u32 segment_size);
  [[nodiscard]] bool poll(IngressFrame& out);

 private:
  void open_v2(std::span<const u8> packet, u32 segment_size);
  void open_v1(std::span<const u8> packet);

  u16 udp_port_;
  IngressFrame common_;       // of all packets in the frame
  std::span<const u8> left_;  // of UDP's payload, or of the GRH's
  std::size_t segment_size_ = 0;
  u16 place_ = 0;  // of the next packet
};

}  // namespace verbena::host
