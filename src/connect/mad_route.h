// route_of: which process of a host a CM MAD is for. The host's QP 1 is one, its CMAgents are many.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"
#include "wire/ib/cm/ids.h"

namespace verbena {

enum class RouteBy : u8 {
  kServiceId,     // REQ, SIDR_REQ: to the process that listens; to any, if none does: it rejects
  kCommId,        // to process_slot_of(comm_id); to any, if that one is gone: it answers for it
  kEveryProcess,  // a REJ of a peer that gave up before it learned our ID: to all
};

struct MADRoute {
  RouteBy by = RouteBy::kEveryProcess;
  ServiceId service_id{};
  CommId comm_id{};
  friend bool operator==(const MADRoute&, const MADRoute&) = default;
};

// nullopt: not a CM message; the caller drops the MAD and counts it.
[[nodiscard]] std::optional<MADRoute> route_of(std::span<const u8> mad);

}  // namespace verbena
