// ECMP: which of several equal ways a flow takes: a hash of its addresses and ports with a seed of
// the switch's own, so that one flow keeps its order and many spread. RFC 2992, 2.
// The hash is MurmurHash3_x86_32 (A. Appleby, 2010, in the public domain), as ns-3 models have it.
#pragma once

#include <array>
#include <bit>

#include "base/types.h"

namespace verbena::fabric {

struct FlowTuple {
  u32 source_address = 0, destination_address = 0;  // IPv4, host order
  u16 source_port = 0, destination_port = 0;        // UDP
};

[[nodiscard]] constexpr u32 flow_hash(const FlowTuple& flow, u32 seed) {
  const std::array<u32, 3> words = {flow.source_address, flow.destination_address,
                                    flow.source_port | u32{flow.destination_port} << 16};
  u32 hash = seed;
  for (const u32 word : words) {
    hash ^= std::rotl(word * 0xcc9e2d51u, 15) * 0x1b873593u;
    hash = std::rotl(hash, 13) * 5 + 0xe6546b64u;
  }
  hash ^= u32{sizeof words};
  hash = (hash ^ hash >> 16) * 0x85ebca6bu;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
  return hash ^ hash >> 16;
}

}  // namespace verbena::fabric
