// Names for people to read, as verbs and IBTA spell them.
#pragma once

#include <string>

#include "device/objects/async_event.h"
#include "memory/access.h"
#include "transport/cqe.h"
#include "transport/qp_attributes.h"
#include "transport/qp_fault.h"

namespace verbena::explain {

[[nodiscard]] const char* name_of(QPType type);          // "RC"
[[nodiscard]] const char* name_of(QPState state);        // "RTS"
[[nodiscard]] const char* name_of(SendOp op);            // "RDMA WRITE"
[[nodiscard]] const char* name_of(WQEStatus status);     // "IBV_WC_SUCCESS (success)"
[[nodiscard]] const char* name_of(AsyncEventType type);  // "IBV_EVENT_QP_FATAL"
[[nodiscard]] std::string syndrome_name(u8 syndrome);    // of an AETH: "ACK", "RNR NAK", ...
// IBV_ACCESS_REMOTE_WRITE and so on; "none".
[[nodiscard]] std::string names_of(AccessFlags access);
// Returns the bit of qp_access_flags that the operation needs; nullptr if it needs none.
[[nodiscard]] const char* needed_flag(SendOp op);

}  // namespace verbena::explain
