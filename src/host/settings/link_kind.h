// The kind of link that carries a device's frames, as the user sets it: VERBENA_LINK.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "device/device_config.h"
#include "host/os/error.h"

namespace verbena::host {

inline constexpr const char* kLinkVariable = "VERBENA_LINK";

enum class LinkKind : unsigned char {
  kUDP,     // UDP sockets: needs no privilege. RoCEv2
  kPacket,  // Ethernet frames through AF_PACKET: CAP_NET_RAW. RoCEv2 and RoCEv1
  kXDP,     // Ethernet frames through AF_XDP: CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF. The same
  kIWARP,   // TCP sockets: needs no privilege. iWARP, not RoCE
};

// As VERBENA_LINK has them, in the order of the enumerators.
inline constexpr std::array<std::string_view, 4> kLinkNames = {"udp", "packet", "xdp", "iwarp"};

[[nodiscard]] std::string_view name_of(LinkKind kind);
[[nodiscard]] std::optional<LinkKind> link_kind_named(std::string_view name);
// Returns kUDP if the variable is unset or empty. EINVAL: it is none of the names.
[[nodiscard]] Expected<LinkKind> link_kind_from_environment();
// Returns the transport of the devices that this process opens. A simulated fabric, if chosen,
// carries RoCE.
[[nodiscard]] Transport transport_from_environment();

}  // namespace verbena::host
