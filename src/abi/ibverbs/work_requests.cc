#include "abi/ibverbs/work_requests.h"

#include <endian.h>

#include "abi/ibverbs/ah_object.h"
#include "abi/ibverbs/translate.h"

namespace verbena::abi {
namespace {

void set_remote(SendRequest& to, const ibv_send_wr& from) {
  to.remote_address = from.wr.rdma.remote_addr;
  to.r_key = RKey{from.wr.rdma.rkey};
}

void set_atomic(SendRequest& to, const ibv_send_wr& from) {
  to.remote_address = from.wr.atomic.remote_addr;
  to.r_key = RKey{from.wr.atomic.rkey};
}

void set_bind(WindowBinding& to, const ibv_send_wr& from) {
  to = {.mw = RKey{from.bind_mw.mw->rkey},
        .mw_new = RKey{from.bind_mw.rkey},
        .mw_bind = to_mw_bind(from.bind_mw.bind_info)};
}

// The operation and its operands.
PostError set_operation(SendWR& to, const ibv_send_wr& from) {
  switch (from.opcode) {
    case IBV_WR_SEND: to.op = SendOp::kSend; return PostError::kOk;
    case IBV_WR_SEND_WITH_IMM:
      to.op = SendOp::kSendWithImmediate;
      to.immediate = be32toh(from.imm_data);
      return PostError::kOk;
    case IBV_WR_SEND_WITH_INV:
      to.op = SendOp::kSendWithInvalidate;
      to.invalidate = RKey{from.invalidate_rkey};
      return PostError::kOk;
    case IBV_WR_RDMA_WRITE:
      to.op = SendOp::kRDMAWrite;
      set_remote(to, from);
      return PostError::kOk;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      to.op = SendOp::kRDMAWriteWithImmediate;
      to.immediate = be32toh(from.imm_data);
      set_remote(to, from);
      return PostError::kOk;
    case IBV_WR_RDMA_READ:
      to.op = SendOp::kRDMARead;
      set_remote(to, from);
      return PostError::kOk;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      to.op = SendOp::kCompareSwap;
      to.compare = from.wr.atomic.compare_add;
      to.swap_or_add = from.wr.atomic.swap;
      set_atomic(to, from);
      return PostError::kOk;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      to.op = SendOp::kFetchAdd;
      to.swap_or_add = from.wr.atomic.compare_add;
      set_atomic(to, from);
      return PostError::kOk;
    case IBV_WR_LOCAL_INV:
      to.op = SendOp::kLocalInvalidate;
      to.invalidate = RKey{from.invalidate_rkey};
      return PostError::kOk;
    case IBV_WR_BIND_MW:
      to.op = SendOp::kBindMW;
      set_bind(to, from);
      return PostError::kOk;
    case IBV_WR_ATOMIC_WRITE:
      to.op = SendOp::kAtomicWrite;
      set_remote(to, from);
      return PostError::kOk;
    case IBV_WR_TSO:
    case IBV_WR_DRIVER1: break;  // and FLUSH, for which ibv_send_wr has no place
  }
  return PostError::kBadOpcode;
}

// UD: where to. IBV_SEND_IP_CSUM is for UD over IP stacks in cards; other services ignore it.
PostError set_destination(UDDestination& to, const ibv_send_wr& from) {
  if (from.wr.ud.ah == nullptr) return PostError::kBadDestination;
  if ((from.send_flags & IBV_SEND_IP_CSUM) != 0) return PostError::kBadOpcode;
  to = {.destination = AHObject::of(from.wr.ud.ah).path,
        .dest_qp = QPN{from.wr.ud.remote_qpn},
        .q_key = QKey{from.wr.ud.remote_qkey}};
  return PostError::kOk;
}

}  // namespace

void set_flags(SendRequest& wr, unsigned send_flags) {
  wr.signaled = (send_flags & IBV_SEND_SIGNALED) != 0;
  wr.solicited = (send_flags & IBV_SEND_SOLICITED) != 0;
  wr.fence = (send_flags & IBV_SEND_FENCE) != 0;
  wr.inline_data = (send_flags & IBV_SEND_INLINE) != 0;
}

MWBind to_mw_bind(const ibv_mw_bind_info& info) {
  return {.mr_l_key = LKey{info.mr == nullptr ? 0 : info.mr->lkey},
          .address = info.addr,
          .length = info.length,
          .access = to_access(info.mw_access_flags)};
}

PostError translate(const ibv_qp& qp, const ibv_send_wr& from, SGEList& sges, SendWR& to) {
  if (!sges.assign(from.sg_list, from.num_sge)) return PostError::kTooManySGEs;
  static_cast<SendRequest&>(to) = {};
  to.wr_id = from.wr_id;
  to.sg_list = sges.sges();
  set_flags(to, from.send_flags);
  if (const PostError error = set_operation(to, from); error != PostError::kOk) return error;
  if (qp.qp_type == IBV_QPT_XRC_SEND) to.xrc_srq = from.qp_type.xrc.remote_srqn;
  return qp.qp_type == IBV_QPT_UD ? set_destination(to, from) : PostError::kOk;
}

PostError translate(const ibv_recv_wr& from, SGEList& sges, RecvWR& to) {
  if (!sges.assign(from.sg_list, from.num_sge)) return PostError::kTooManySGEs;
  to.wr_id = from.wr_id;
  to.sg_list = sges.sges();
  return PostError::kOk;
}

}  // namespace verbena::abi
