// MADRouter: which process of this host a packet to QP 1 is for. All processes on an address share its
// QP 1; the kernel gives each such packet to any one of them. Requests go to the process that listens,
// everything else to the one whose slot is in the Communication ID. What nobody claims is ours: our
// CMAgent gives the answer that says so.
// A packet is handed on once: who gets it from another process takes it as its own.
#pragma once

#include <optional>

#include "connect/comm_id_space.h"
#include "connect/mad_route.h"
#include "device/frame.h"
#include "host/cm/port_directory.h"
#include "host/directory.h"
#include "host/process_channel.h"

namespace verbena::host {

class MADRouter {
 public:
  enum class Outcome : u8 { kOurs, kHandedOn, kDropped };

  // Both outlive it.
  MADRouter(const Directory& directory, ProcessChannel& channel)
      : directory_(directory), channel_(channel) {}

  // `frame`: to QP 1, from the network. kDropped: its process has no room for it.
  [[nodiscard]] Outcome route(const IngressFrame& frame);
  void close() { ports_.reset(); }

 private:
  [[nodiscard]] Outcome to_listener(ServiceId service, const IngressFrame& frame);
  [[nodiscard]] Outcome to_slot(u32 slot, const IngressFrame& frame);
  void to_all_others(const IngressFrame& frame);
  [[nodiscard]] std::vector<u32> slots_at(const GID& address) const;

  const Directory& directory_;
  ProcessChannel& channel_;
  std::optional<PortDirectory> ports_;  // opened when it is first needed
};

}  // namespace verbena::host
