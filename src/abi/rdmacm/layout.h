// The layouts that programs of librdmacm were compiled with (64-bit Linux): they reach into these
// structures from inline functions. Asserted whatever header Verbena is built with.
#pragma once

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <cstddef>

namespace verbena::rdmacm {

static_assert(sizeof(rdma_cm_id) == 416);
static_assert(offsetof(rdma_cm_id, channel) == 8);
static_assert(offsetof(rdma_cm_id, qp) == 24);
static_assert(offsetof(rdma_cm_id, route) == 32);
static_assert(offsetof(rdma_cm_id, ps) == 344);
static_assert(offsetof(rdma_cm_id, event) == 352);
static_assert(offsetof(rdma_cm_id, send_cq_channel) == 360);
static_assert(offsetof(rdma_cm_id, srq) == 392);
static_assert(offsetof(rdma_cm_id, pd) == 400);
static_assert(offsetof(rdma_cm_id, qp_type) == 408);
static_assert(sizeof(rdma_cm_event) == 80);
static_assert(offsetof(rdma_cm_event, event) == 16);
static_assert(offsetof(rdma_cm_event, param) == 24);
static_assert(sizeof(rdma_conn_param) == 24);
static_assert(sizeof(rdma_ud_param) == 56);
static_assert(sizeof(rdma_addrinfo) == 96);
static_assert(sizeof(rdma_event_channel) == 4);

}  // namespace verbena::rdmacm
