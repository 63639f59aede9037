// route_of: finds the process of a host to which a CM MAD belongs. The host has one QP 1 and many
// CMAgents.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"
#include "wire/ib/cm/ids.h"

namespace verbena {

enum class RouteBy : u8 {
  kServiceId,  // REQ, SIDR_REQ: to the process that listens; if none does, to any, which rejects
  kCommId,  // to process_slot_of(comm_id); if that process has ended, to any, which answers for it
  kEveryProcess,  // a REJ of a peer that gave up before it learned our ID
};

struct MADRoute {
  RouteBy by = RouteBy::kEveryProcess;
  ServiceId service_id{};
  CommId comm_id{};
  friend bool operator==(const MADRoute&, const MADRoute&) = default;
};

// Returns nullopt if the MAD is not a CM message: the caller drops and counts it.
[[nodiscard]] std::optional<MADRoute> route_of(std::span<const u8> mad);

}  // namespace verbena
