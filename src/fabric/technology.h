// Technology: what the hosts of a network speak, and with it what their links and switches do.
#pragma once

#include <array>
#include <string_view>

#include "base/check.h"
#include "base/time.h"
#include "base/types.h"

namespace verbena::fabric {

enum class Technology : u8 {
  kRoCEv2,      // the InfiniBand transport in UDP on Ethernet. IBTA Vol 1, annex A17
  kInfiniBand,  // on links of its own, with credits. IBTA Vol 1, 7
  kIWARP,       // RDMA in TCP. RFC 5040, 5041, 5044
  kTCP,         // sockets: no RDMA
};

inline constexpr std::array kTechnologies = {Technology::kRoCEv2, Technology::kInfiniBand,
                                             Technology::kIWARP, Technology::kTCP};

[[nodiscard]] constexpr std::string_view name_of(Technology technology) {
  switch (technology) {
    case Technology::kRoCEv2: return "rocev2";
    case Technology::kInfiniBand: return "infiniband";
    case Technology::kIWARP: return "iwarp";
    case Technology::kTCP: return "tcp";
  }
  CHECK_UNREACHABLE();
}

[[nodiscard]] constexpr bool speaks_tcp(Technology technology) {
  return technology == Technology::kIWARP || technology == Technology::kTCP;
}

// Returns the time on the wire that a frame takes besides its bytes, in bytes' times: preamble
// and start delimiter, 8, and the gap before it, 12. IEEE 802.3, 3.1.1 and 4.4.2. InfiniBand's
// packets follow each other; its delimiters are symbols of the link's encoding. IBTA Vol 1, 7.3.
[[nodiscard]] constexpr u32 gap_bytes_of(Technology technology) {
  return technology == Technology::kInfiniBand ? 0 : 8 + 12;
}

// Returns the latency of a switch, from a frame's arrival to its departure, without waiting. Delays
// of links are those of cables alone. `verbena sim` and `verbena plan` both use these values.
//   Ethernet     425 ns: NVIDIA's data sheet of the Spectrum SN3000 and SN4000 series
//   InfiniBand   130 ns: NVIDIA's data sheet of the Quantum QM8700; the QM9700 has less than 150
[[nodiscard]] constexpr Duration switch_latency_of(Technology technology) {
  return technology == Technology::kInfiniBand ? ns(130) : ns(425);
}

}  // namespace verbena::fabric
