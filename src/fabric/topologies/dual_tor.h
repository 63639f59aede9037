// Dual-ToR, dual-plane: each NIC has a port on each of two ToR switches that know nothing of each
// other, so that the loss of one costs half of the bandwidth and no connection. Qian et al.,
// Alibaba HPN: A Data Center Network for Large Language Model Training, SIGCOMM 2024, 4 and 5.
//
// A segment is the set of nodes that one set of ToR switches joins: each rail has a pair of them,
// to which NIC R of each of the segment's nodes is linked. With two planes all first ToRs of a pod
// and their spines are a network of their own, and so are all second ones: a frame stays in the
// plane of its sender's port. With one plane both ToRs are linked to the same spines. Cores join
// the spines of a plane (of all pods). Each NIC is a host, nN.gR: NIC R of node N; nodes are
// counted through all segments. Names: torS.R.A and torS.R.B, a pair of segment S and rail R
// (segments, too, are counted through all pods); spineA0, spineA1 .. of the plane A, with podP.
// before it where there are several; coreA0 ...
#pragma once

#include "fabric/topologies/plan.h"

namespace verbena::fabric {

struct DualTor {
  u32 pods = 1, segments = 2;            // segments: of each pod
  u32 hosts_per_segment = 8, rails = 1;  // nodes, and NICs of each
  u32 planes = 2;                        // 1 or 2
  u32 spines_per_plane = 4;              // of each pod; 0: a segment is an island
  u32 cores_per_plane = 0;
};
[[nodiscard]] Plan dual_tor(const DualTor& shape, const PlanLinks& links);
// Returns the number of nodes of all kinds.
[[nodiscard]] constexpr u64 dual_tor_nodes(const DualTor& shape) {
  const u64 segments = u64{shape.pods} * shape.segments;
  return segments * shape.rails * (u64{shape.hosts_per_segment} + 2) +
         u64{shape.planes} * (u64{shape.pods} * shape.spines_per_plane + shape.cores_per_plane);
}

}  // namespace verbena::fabric
