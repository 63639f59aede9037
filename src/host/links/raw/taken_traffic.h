// Which packets a raw link takes: RoCEv2 and RoCEv1 to an address of the device and a QP of this
// process (qpn_slot.h). The port of a NIC process takes RoCEv2 to all QPs. Everything else is left
// to the kernel and to UDP sockets: QP 1, multicast, other processes' QPs. As tests that a BPF
// program can make, classic (take_filter.h) or not (xdp_program.h).
#pragma once

#include <optional>
#include <vector>

#include "base/types.h"
#include "host/sharing/steering_program.h"
#include "wire/eth/ethernet.h"
#include "wire/ib/gid.h"
#include "wire/roce/icrc.h"

namespace verbena::host {

struct TakenTraffic {
  std::vector<GID> addresses;
  std::optional<u32> slot{};  // nullopt: all QPs, and no RoCEv1
  u32 interface_index = 0;
  MAC mac;  // of the interface
  // Where the link encrypts, packets are PSP's: on another port, with the slot in the SPI, and no
  // RoCEv1.
  u16 udp_port = kRoCEv2Port;
  SteerBy steer_by = SteerBy::kDestQP;
  // Frames with a tag of this VLAN, and no others; nullopt: without a tag, or of VLAN 0. No RoCEv1.
  std::optional<u16> vlan{};
  bool takes_management = false;  // packets to QP 1 as well
};

enum class FieldSize : u8 { kByte = 1, kHalf = 2, kWord = 4 };  // bytes

// A field of the packet, in network order, has this value where the mask has ones.
struct FieldTest {
  FieldSize size;
  u32 at;  // bytes from the Ethernet header on
  u32 mask, value;
};

// A frame is taken that passes all tests of any of the cases. In each, the field that lies furthest
// behind ends at `size_bytes`.
struct TakenCase {
  std::vector<FieldTest> tests;
  u32 size_bytes = 0;
};
[[nodiscard]] std::vector<TakenCase> cases_of(const TakenTraffic& taken);

// The test for the process's slot, in the BTH or the PSP header that begins at `at`.
[[nodiscard]] FieldTest slot_test(u32 slot, SteerBy by, u32 at);

}  // namespace verbena::host
