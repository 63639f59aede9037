// Functions of RDMACM_1.4, which rdma-core added to <rdma/rdma_cma.h> after version 44 (Debian 12).
// They are declared here for every header that Verbena is built with.
#pragma once

#include "abi/rdmacm/layout.h"

extern "C" {
int rdma_resolve_addrinfo(rdma_cm_id* id, const char* node, const char* service,
                          const rdma_addrinfo* hints);
int rdma_query_addrinfo(rdma_cm_id* id, rdma_addrinfo** info);
int rdma_write_cm_event(rdma_cm_id* id, rdma_cm_event_type event, int status, uint64_t arg);
}

namespace verbena::rdmacm {

inline constexpr int kEventAddrinfoResolved = 16, kEventAddrinfoError = 17, kEventUser = 18;
inline constexpr int kFlagSA = 0x10, kFlagDNS = 0x20;  // RAI_SA, RAI_DNS

}  // namespace verbena::rdmacm
