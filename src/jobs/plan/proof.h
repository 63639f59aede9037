// Proof: what was computed for RoCEv2 (tuning.h), put into switches and NICs of a simulation, under
// the worst that one switch can meet: all of its ports but two send to one, at line rate, at the
// same moment.
//
//   senders ---+
//   ...        +-- A ---- target           every sender, and b0, send to the target;
//   senders ---+   |  \-- bystander        b1 sends to the bystander: the victim, whose way
//                  B -- b0, b1             nobody needs but b0, on the link from B to A
//
// Links have the rate and the length that the tuning is for, and take longer: their delay stands
// for PHYs and responses that are as slow as IEEE 802.3 allows, too. What simulated neighbours do
// not need is then only that a frame which a pause waits for may be of another priority and longer.
#pragma once

#include <string>
#include <vector>

#include "fabric/network.h"
#include "jobs/plan/tuning.h"
#include "jobs/stop.h"

namespace verbena::jobs {

struct ProofRequest {
  const TuningRequest& request;
  const Tuning& tuning;
  const fabric::NetworkConfig& network;  // of the job: MTU, buffers, seed
  u32 ports = 64;                        // of the largest switch
};

struct ProofRun {
  std::string name;
  u64 headroom_bytes = 0;
  u64 drops = 0, pauses = 0, marks = 0;
  Duration incast{};           // until the last of its flows has ended
  Duration longest_pause{};    // of the link from B to A, in sum
  double victim_slowdown = 0;  // its time over that alone
  bool is_finished = false;
};

struct Proof {
  u32 senders = 0;
  u64 bytes = 0;                 // that each sends
  u64 least_headroom_bytes = 0;  // with which nothing is dropped here
  // The runs: as tuned; without DCQCN; with too little headroom; without PFC; as tuned, with
  // nothing else in the buffer.
  std::vector<ProofRun> runs;
  [[nodiscard]] bool holds() const;
};

// Returns fewer runs if `stop` ends the proof.
[[nodiscard]] Proof prove(const ProofRequest& request, const Stop& stop);
[[nodiscard]] std::string text_of(const ProofRequest& request, const Proof& proof);

}  // namespace verbena::jobs
