// Star: hosts h0, h1, ... on one switch, s0.
#pragma once

#include "fabric/topologies/plan.h"

namespace verbena::fabric {

[[nodiscard]] Plan star(u32 hosts, const LinkConfig& link);

}  // namespace verbena::fabric
