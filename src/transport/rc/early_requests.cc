// Early requests at an RC responder with selective repeat: it keeps them, reports which it has, and
// executes them when the missing ones have arrived.
#include <algorithm>

#include "transport/rc/responder.h"

namespace verbena {

// Makes room before the first packet; only now is the packets' size known.
void RCResponder::make_room() {
  if (limits_.retransmission == Retransmission::kGoBackN) return;
  const u32 packets = limits_.window(mtu());
  reorder_buffer_ = std::make_unique<ReorderBuffer>(RCLimits::most_psns(packets), packets, mtu());
}

void RCResponder::on_early(const PacketView& packet, u32 ahead) {
  const bool fits = ahead < reorder_buffer_->window();
  if (fits) reorder_buffer_->keep(packet);
  const PSN psn = fits ? packet.headers.bth.psn : expected_;
  responses_.sack(expected_, msn_, reorder_buffer_->around(psn));
}

// A request that does not execute counts as lost: it was refused, or there was no room for its
// answer. Stops after a completed receive, which must be polled first.
void RCResponder::execute_kept() {
  if (reorder_buffer_ == nullptr || reorder_buffer_->empty()) return;
  const PSN before = expected_;
  while (!failed_ && !cqe_) {
    const std::optional<PacketView> packet = reorder_buffer_->take(expected_);
    if (!packet) break;
    const PSN psn = expected_;
    execute(*packet);
    if (expected_ == psn) return;
  }
  if (expected_ != before && !failed_) responses_.acknowledge(expected_.previous(), msn_);
}

// Forgets packets that claim PSNs of the responses to a READ: nobody would ask for them.
void RCResponder::forget_kept(u32 psns) {
  if (reorder_buffer_ == nullptr || reorder_buffer_->empty()) return;
  const u32 end = std::min(psns, reorder_buffer_->window());
  for (u32 i = 1; i < end; ++i) (void)reorder_buffer_->take(expected_.advanced(i));
}

// Reports all kept packets: earlier reports may be lost.
void RCResponder::tell_of_kept() {
  const u32 window = reorder_buffer_->window();
  if (reorder_buffer_->empty()) return;
  for (u32 i = 0; i < window + SackETH::kPSNs; i += SackETH::kPSNs) {
    const SackETH some = reorder_buffer_->around(expected_.advanced(i));
    if (some.bits != 0) responses_.sack(expected_, msn_, some);
  }
}

}  // namespace verbena
