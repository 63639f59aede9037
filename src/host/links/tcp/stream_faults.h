// StreamFaults: the fault rules of an iWARP adapter, and the bytes of each connection that they
// hold.
// Only connections that begin while there are rules have queues of their own (FaultyStream).
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "faults/fpdu_queue.h"
#include "host/links/object_fault.h"
#include "host/os/error.h"
#include "transport/stream_agreement.h"

namespace verbena::host {

// Both directions of one connection.
struct FaultyStream {
  // The bytes that a direction holds before the program's side waits, as for a socket's buffer.
  static constexpr std::size_t kMostHeld = 1 << 20;

  FaultyStream(QPN qp, const GID& peer)
      : qpn(qp),
        out(faults::Direction::kTransmit, qp, peer),
        in(faults::Direction::kReceive, qp, peer) {}
  [[nodiscard]] bool is_full() const { return out.bytes() >= kMostHeld; }
  [[nodiscard]] bool in_is_full() const { return in.bytes() >= kMostHeld; }
  [[nodiscard]] Time next_due() const { return std::min(out.next_due(), in.next_due()); }

  QPN qpn;
  faults::FPDUQueue out, in;
  bool in_ends = false;    // the peer's end has come, behind what `in` holds
  bool out_ends = false;   // ours comes behind what `out` holds
  bool is_paused = false;  // the QP, until `out` has room
};

class StreamFaults {
 public:
  // No rules if empty. EINVAL: a rule has no meaning here, and all stays as it is.
  [[nodiscard]] Expected<void> set_rules(std::vector<faults::Rule> rules, u64 seed, Time now);
  [[nodiscard]] faults::FaultFilter* filter() { return filter_.get(); }
  // Returns nullptr if there are no rules.
  [[nodiscard]] std::unique_ptr<FaultyStream> begin(QPN qpn, const GID& peer,
                                                    const StreamAgreement& agreement) const;

  void note_objects(FaultyStream& stream);
  // Returns each object fault that is due, once; nullopt if none is.
  [[nodiscard]] std::optional<ObjectFault> poll_object_fault();

 private:
  std::unique_ptr<faults::FaultFilter> filter_;
  std::vector<ObjectFault> object_faults_;
};

}  // namespace verbena::host
