// pcapng: the blocks of a capture file that Wireshark reads. IETF draft-ietf-opsawg-pcapng, 4.1
// (Section Header), 4.2 (Interface Description), 4.3 (Enhanced Packet), 3.5 (options).
// Little-endian, one section, time stamps in nanoseconds since 1970.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace verbena::pcapng {

// Appends the section header, the first block of a file.
void append_section(std::string_view application, std::vector<u8>& out);
// The first header of a packet. tcpdump.org's list of link types.
enum class LinkType : u16 {
  kEthernet = 1,
  kERF = 197,  // Endace's record header, which names the next header
};
// The number of an interface is the number of interfaces before it.
void append_interface(std::string_view name, std::vector<u8>& out,
                      LinkType type = LinkType::kEthernet);

enum class PacketDirection : u8 { kInbound = 1, kOutbound = 2 };  // epb_flags, bits 0 and 1

struct Packet {
  u32 interface = 0;
  i64 time_ns = 0;
  PacketDirection direction = PacketDirection::kInbound;
  std::string_view comment{};  // "": none
};
// `parts` together are the frame, from its first header on.
void append_packet(const Packet& packet, std::span<const std::span<const u8>> parts,
                   std::vector<u8>& out);

}  // namespace verbena::pcapng
