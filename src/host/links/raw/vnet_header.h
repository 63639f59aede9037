// The header before each frame of a packet socket with PACKET_VNET_HDR: the work that is left to
// the interface, or that the kernel has not done yet. virtio 1.2, 5.1.6; fields in the host's byte
// order, as the kernel has them. (<linux/virtio_net.h> is no C++.)
#pragma once

#include "base/types.h"

namespace verbena::host {

struct VNetHeader {
  static constexpr u8 kNeedsChecksum = 1;          // VIRTIO_NET_HDR_F_NEEDS_CSUM
  static constexpr u8 kNotCut = 0, kCutAsUDP = 5;  // VIRTIO_NET_HDR_GSO_NONE, _GSO_UDP_L4
  u8 flags = 0;
  u8 gso_type = kNotCut;
  u16 headers_size = 0;     // bytes before the payload that is cut
  u16 segment_size = 0;     // of UDP payload
  u16 checksum_start = 0;   // in the frame
  u16 checksum_offset = 0;  // behind checksum_start
};
static_assert(sizeof(VNetHeader) == 10);

}  // namespace verbena::host
