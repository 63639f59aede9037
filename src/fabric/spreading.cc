#include "fabric/spreading.h"

#include <algorithm>

#include "base/check.h"

namespace verbena::fabric {
namespace {

// Returns the destination QPN of the BTH, IBTA 9.2.
u32 destination_qpn(const Frame& frame) {
  return u32{frame.headers[5]} << 16 | u32{frame.headers[6]} << 8 | frame.headers[7];
}

}  // namespace

Spreading::Spreading(const SpreadingConfig& config, u32 hash_seed, u64 seed)
    : config_(config), hash_seed_(hash_seed), prng_(seed) {
  CHECK(config.flowlets != 0);
  if (config.kind == SpreadingConfig::Kind::kFlowlet) flowlets_.resize(config.flowlets);
}

u16 Spreading::choose_blindly(std::span<const u16> ways, const FlowTuple& flow, const Frame& frame,
                              Time now) {
  const u32 hash = flow_hash(flow, hash_seed_);
  switch (config_.kind) {
    case SpreadingConfig::Kind::kFlowAndQPHash:
      return ways[flow_hash({.source_address = destination_qpn(frame)}, hash) %
                  static_cast<u32>(ways.size())];
    case SpreadingConfig::Kind::kPacketSpray: return any(ways);
    case SpreadingConfig::Kind::kFlowlet: return of_flowlet(ways, hash, now);
    case SpreadingConfig::Kind::kFlowHash:  // choose() does these
    case SpreadingConfig::Kind::kLeastLoaded: break;
  }
  CHECK_UNREACHABLE();
}

u16 Spreading::of_flowlet(std::span<const u16> ways, u32 hash, Time now) {
  Flowlet& flowlet = flowlets_[hash % config_.flowlets];
  const bool goes_on = flowlet.last >= Time() && now - flowlet.last <= config_.flowlet_gap &&
                       std::ranges::find(ways, flowlet.way) != ways.end();
  if (!goes_on) flowlet.way = any(ways);
  flowlet.last = now;
  return flowlet.way;
}

}  // namespace verbena::fabric
