#include "host/events/port_watch.h"

namespace verbena::host {

void PortWatch::look_at_fabric(Time now) {
  if (fabric_->has_died()) fail_all_qps(now);
  if (const std::optional<FabricLink::PortChange> change = fabric_->take_port_change())
    tell_change(*change);
}

// Connections do not outlive the NIC process, which had their packets; the port does.
void PortWatch::look_at_nic(Time now) {
  if (nic_->take_death()) fail_all_qps(now);
  if (nic_->take_return()) events_.deliver({.type = AsyncEventType::kPortActive});
}

// IBTA 11.6.3.3
void PortWatch::tell_change(const FabricLink::PortChange& change) const {
  constexpr u8 kActive = 4;  // PortInfo.PortState
  const FabricPortAttributes &before = change.before, &now = change.now;
  const auto tell = [this](bool is_so, AsyncEventType type) {
    if (is_so) events_.deliver({.type = type});
  };
  tell(before.lid != now.lid || before.lmc != now.lmc, AsyncEventType::kLIDChange);
  tell(before.sm_lid != now.sm_lid || before.sm_sl != now.sm_sl, AsyncEventType::kSMChange);
  tell(before.p_keys != now.p_keys, AsyncEventType::kPKeyChange);
  tell(before.gid_prefix != now.gid_prefix, AsyncEventType::kGIDChange);
  tell(now.client_reregister, AsyncEventType::kClientReregister);
  tell(before.state == kActive && now.state != kActive, AsyncEventType::kPortError);
  tell(before.state != kActive && now.state == kActive, AsyncEventType::kPortActive);
}

// As when a card is removed: each QP ends in error, then the port is told to be down.
void PortWatch::fail_all_qps(Time now) {
  for (const QueuePair* qp = device_.find_qp_from(QPN{}); qp != nullptr;) {
    const QPN number = device_.attributes_of(qp).qpn;
    device_.fail_qp(device_.find_qp(number), now);
    qp = device_.find_qp_from(QPN{number.value + 1});
  }
  events_.deliver({.type = AsyncEventType::kPortError});
}

}  // namespace verbena::host
