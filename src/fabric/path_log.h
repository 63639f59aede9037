// PathLog: by which ports a node sent the frames of each flow, for reports. A network has one for
// each node that has a choice, and only after Network::log_paths(): other runs pay for one test of
// a pointer at each hop.
// Frames are told apart as ECMP does it, by hosts and UDP source port, so that QPs of two hosts
// that share a source port share an entry.
#pragma once

#include <unordered_set>
#include <vector>

#include "fabric/frame.h"

namespace verbena::fabric {

// The frames of one direction of a connection.
struct PathKey {
  u32 source = 0, destination = 0;  // hosts: below kMaxNodes
  u16 source_port = 0;              // UDP
};

class PathLog {
 public:
  static constexpr std::size_t kMostEntries = 1u << 16;  // of a node; later ones are not kept

  // Not part of a switch's hot function.
  [[gnu::noinline, gnu::cold]] void note(const Frame& frame, u16 port);
  [[nodiscard]] bool has(const PathKey& key, u16 port) const {
    return entries_.contains(entry_of(key, port));
  }

 private:
  static constexpr u64 entry_of(const PathKey& key, u16 port) {
    return u64{key.source & 0xffff} << 48 | u64{key.destination & 0xffff} << 32 |
           u64{key.source_port} << 16 | port;
  }

  u64 last_ = ~u64{0};
  std::unordered_set<u64> entries_;
};

// One hop of a path: the port of a node that sent.
struct PathHop {
  u32 node = 0, port = 0;
  friend bool operator==(const PathHop&, const PathHop&) = default;
};

}  // namespace verbena::fabric
