// The layouts that programs were compiled with (64-bit Linux): they reach into these objects from
// inline functions. The types are those of the installed <infiniband/verbs.h>; what is asserted
// here is that those are the ones of rdma-core's ABI, whatever header Verbena is built with.
#pragma once

#include <infiniband/verbs.h>

namespace verbena::abi {

static_assert(sizeof(ibv_context_ops) == 256);
static_assert(offsetof(ibv_context_ops, alloc_mw) == 56);
static_assert(offsetof(ibv_context_ops, bind_mw) == 64);
static_assert(offsetof(ibv_context_ops, dealloc_mw) == 72);
static_assert(offsetof(ibv_context_ops, poll_cq) == 88);
static_assert(offsetof(ibv_context_ops, req_notify_cq) == 96);
static_assert(offsetof(ibv_context_ops, post_srq_recv) == 160);
static_assert(offsetof(ibv_context_ops, post_send) == 200);
static_assert(offsetof(ibv_context_ops, post_recv) == 208);

static_assert(sizeof(ibv_context) == 328);
static_assert(offsetof(ibv_context, ops) == 8);
static_assert(offsetof(ibv_context, async_fd) == 268);
static_assert(offsetof(ibv_context, abi_compat) == 320);

// verbs_context grows at its front; inline functions count back from its end.
constexpr std::size_t from_end(std::size_t offset) { return sizeof(verbs_context) - offset; }
static_assert(from_end(offsetof(verbs_context, context)) == sizeof(ibv_context));
static_assert(from_end(offsetof(verbs_context, sz)) == 336);
static_assert(from_end(offsetof(verbs_context, close_xrcd)) == 352);
static_assert(from_end(offsetof(verbs_context, open_xrcd)) == 360);
static_assert(from_end(offsetof(verbs_context, create_srq_ex)) == 368);
static_assert(from_end(offsetof(verbs_context, get_srq_num)) == 376);
static_assert(from_end(offsetof(verbs_context, create_qp_ex)) == 384);
static_assert(from_end(offsetof(verbs_context, open_qp)) == 392);
static_assert(from_end(offsetof(verbs_context, query_device_ex)) == 432);
static_assert(from_end(offsetof(verbs_context, create_cq_ex)) == 448);
static_assert(from_end(offsetof(verbs_context, query_port)) == 648);

static_assert(sizeof(ibv_device) == 664);
static_assert(offsetof(ibv_device, node_type) == 16);
static_assert(offsetof(ibv_device, name) == 24);

static_assert(sizeof(ibv_comp_channel) == 16);
static_assert(sizeof(ibv_pd) == 16);
static_assert(sizeof(ibv_mr) == 48);
static_assert(sizeof(ibv_mw) == 32);
static_assert(sizeof(ibv_ah) == 24);
static_assert(sizeof(ibv_srq) == 128);
static_assert(sizeof(ibv_cq) == 128);
static_assert(sizeof(ibv_cq_ex) == 288);
static_assert(offsetof(ibv_cq_ex, status) == 132);
static_assert(offsetof(ibv_cq_ex, start_poll) == 144);
static_assert(sizeof(ibv_qp) == 160);
static_assert(offsetof(ibv_qp, qp_num) == 52);
static_assert(sizeof(ibv_qp_ex) == 352);
static_assert(offsetof(ibv_qp_ex, wr_id) == 168);
static_assert(offsetof(ibv_qp_ex, wr_atomic_cmp_swp) == 184);
static_assert(offsetof(ibv_qp_ex, wr_start) == 320);

static_assert(sizeof(ibv_sge) == 16);
static_assert(sizeof(ibv_send_wr) == 128);
static_assert(sizeof(ibv_recv_wr) == 32);
static_assert(sizeof(ibv_wc) == 48);
static_assert(sizeof(ibv_qp_attr) == 144);
static_assert(sizeof(ibv_qp_init_attr) == 64);
static_assert(sizeof(ibv_device_attr) == 232);
static_assert(sizeof(ibv_port_attr) == 52);
static_assert(sizeof(ibv_gid_entry) == 32);
static_assert(sizeof(ibv_async_event) == 16);

}  // namespace verbena::abi
