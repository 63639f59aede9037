// The classic BPF program that tells the kernel which of several sockets on UDP port 4791 gets a
// datagram: by the slot in BTH's DestQP, which may lie in VXLAN, or, for a PSP packet, in the SPI,
// because the rest is encrypted. SO_ATTACH_REUSEPORT_CBPF; offset 0 is the UDP payload. All
// processes share QP 1: a CM MAD that names a Communication ID goes to the process that owns the
// ID. Every other one goes to a process drawn at random, so that the peer's repetition finds a live
// one even if another is stopped. A probe (see probe_packet.h) goes to the socket whose index it
// names.
#pragma once

#include <linux/filter.h>

#include <span>
#include <vector>

#include "base/types.h"

namespace verbena::host {

inline constexpr std::size_t kMaxSteered = 512;  // sockets; the kernel bounds a program's memory

struct Steer {
  u32 slot = 0;
  u32 index = 0;  // of the socket, in the kernel's group: the order of bind()
};

enum class SteerBy : u8 {
  kDestQP,
  kSPI,
  kDestQPInVXLANOverIPv4,  // of the RoCEv2 packet inside
  kDestQPInVXLANOverIPv6,
};

// `table`: at most kMaxSteered. Slot 0 goes to a random one; a slot that is not in the table,
// anywhere.
[[nodiscard]] std::vector<sock_filter> steering_program(std::vector<Steer> table,
                                                        SteerBy by = SteerBy::kDestQP);

// Returns false if it failed; errno says why.
[[nodiscard]] bool attach_steering(int fd, std::vector<Steer> table, SteerBy by = SteerBy::kDestQP);
void detach_steering(int fd);

}  // namespace verbena::host
