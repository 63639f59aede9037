// PortWatch: tells programs of events of the port that begin below the device: a subnet manager
// changes the port, the fabric's server ends, the NIC process ends and returns. Not thread-safe:
// the adapter's lock guards it.
#pragma once

#include "host/events/event_delivery.h"
#include "host/links/fabric/fabric_link.h"
#include "host/links/nic/nic_presence.h"

namespace verbena::host {

class PortWatch {
 public:
  // Both outlive this.
  PortWatch(Device& device, const EventDelivery& events) : device_(device), events_(events) {}

  // The link that carries the device's frames. It outlives this.
  void watch(FabricLink* fabric) { fabric_ = fabric; }
  void watch(NICPresence* nic) { nic_ = nic; }

  // Tells all that has happened since the last look. `now`: by the device's clock.
  void look(Time now) {
    if (fabric_ != nullptr) look_at_fabric(now);
    if (nic_ != nullptr) look_at_nic(now);
  }

 private:
  void look_at_fabric(Time now);
  void look_at_nic(Time now);
  void tell_change(const FabricLink::PortChange& change) const;
  void fail_all_qps(Time now);

  Device& device_;
  const EventDelivery& events_;
  FabricLink* fabric_ = nullptr;
  NICPresence* nic_ = nullptr;
};

}  // namespace verbena::host
