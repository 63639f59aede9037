// rdma_event_str(3): the names of events that rdma-core has.
#include <array>

#include "abi/ibverbs/exceptions.h"
#include "abi/rdmacm/layout.h"

const char* rdma_event_str(rdma_cm_event_type event) try {
  constexpr std::array kNames = {
      "RDMA_CM_EVENT_ADDR_RESOLVED",     "RDMA_CM_EVENT_ADDR_ERROR",
      "RDMA_CM_EVENT_ROUTE_RESOLVED",    "RDMA_CM_EVENT_ROUTE_ERROR",
      "RDMA_CM_EVENT_CONNECT_REQUEST",   "RDMA_CM_EVENT_CONNECT_RESPONSE",
      "RDMA_CM_EVENT_CONNECT_ERROR",     "RDMA_CM_EVENT_UNREACHABLE",
      "RDMA_CM_EVENT_REJECTED",          "RDMA_CM_EVENT_ESTABLISHED",
      "RDMA_CM_EVENT_DISCONNECTED",      "RDMA_CM_EVENT_DEVICE_REMOVAL",
      "RDMA_CM_EVENT_MULTICAST_JOIN",    "RDMA_CM_EVENT_MULTICAST_ERROR",
      "RDMA_CM_EVENT_ADDR_CHANGE",       "RDMA_CM_EVENT_TIMEWAIT_EXIT",
      "RDMA_CM_EVENT_ADDRINFO_RESOLVED", "RDMA_CM_EVENT_ADDRINFO_ERROR"};
  const auto index = static_cast<std::size_t>(event);
  return index < kNames.size() ? kNames[index] : "UNKNOWN EVENT";
} catch (...) {
  return verbena::abi::fail(verbena::abi::errno_of_exception());
}
