// Technology: what the hosts of a network speak, and with it what their links and switches do.
#pragma once

#include <array>
#include <string_view>

#include "base/check.h"
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

}  // namespace verbena::fabric
