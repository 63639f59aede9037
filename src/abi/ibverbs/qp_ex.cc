#include "abi/ibverbs/qp_ex.h"

#include <endian.h>

#include "abi/ibverbs/ah_object.h"
#include "abi/ibverbs/check/hooks.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/work_requests.h"

namespace verbena::abi {
namespace {

SendBuilder& builder_of(ibv_qp_ex* qp) { return *QPObject::of(qp).builder; }

SendWR request(const ibv_qp_ex* qp, SendOp op) {
  SendWR wr;
  wr.wr_id = qp->wr_id;
  wr.op = op;
  set_flags(wr, qp->wr_flags);
  wr.inline_data = false;  // the setter says, not the flag
  return wr;
}

SendWR remote_request(const ibv_qp_ex* qp, SendOp op, u32 rkey, u64 remote_address) {
  SendWR wr = request(qp, op);
  wr.r_key = RKey{rkey};
  wr.remote_address = remote_address;
  return wr;
}

// --- operations

void wr_send(ibv_qp_ex* qp) { builder_of(qp).begin(request(qp, SendOp::kSend)); }

void wr_send_imm(ibv_qp_ex* qp, __be32 immediate) {
  SendWR wr = request(qp, SendOp::kSendWithImmediate);
  wr.immediate = be32toh(immediate);
  builder_of(qp).begin(wr);
}

void wr_send_inv(ibv_qp_ex* qp, u32 rkey) {
  SendWR wr = request(qp, SendOp::kSendWithInvalidate);
  wr.invalidate = RKey{rkey};
  builder_of(qp).begin(wr);
}

void wr_rdma_write(ibv_qp_ex* qp, u32 rkey, u64 address) {
  builder_of(qp).begin(remote_request(qp, SendOp::kRDMAWrite, rkey, address));
}

void wr_rdma_write_imm(ibv_qp_ex* qp, u32 rkey, u64 address, __be32 immediate) {
  SendWR wr = remote_request(qp, SendOp::kRDMAWriteWithImmediate, rkey, address);
  wr.immediate = be32toh(immediate);
  builder_of(qp).begin(wr);
}

void wr_rdma_read(ibv_qp_ex* qp, u32 rkey, u64 address) {
  builder_of(qp).begin(remote_request(qp, SendOp::kRDMARead, rkey, address));
}

void wr_atomic_cmp_swp(ibv_qp_ex* qp, u32 rkey, u64 address, u64 compare, u64 swap) {
  SendWR wr = remote_request(qp, SendOp::kCompareSwap, rkey, address);
  wr.compare = compare;
  wr.swap_or_add = swap;
  builder_of(qp).begin(wr);
}

void wr_atomic_fetch_add(ibv_qp_ex* qp, u32 rkey, u64 address, u64 add) {
  SendWR wr = remote_request(qp, SendOp::kFetchAdd, rkey, address);
  wr.swap_or_add = add;
  builder_of(qp).begin(wr);
}

void wr_local_inv(ibv_qp_ex* qp, u32 rkey) {
  SendWR wr = request(qp, SendOp::kLocalInvalidate);
  wr.invalidate = RKey{rkey};
  builder_of(qp).begin(wr);
}

void wr_bind_mw(ibv_qp_ex* qp, ibv_mw* mw, u32 rkey, const ibv_mw_bind_info* info) {
  SendWR wr = request(qp, SendOp::kBindMW);
  wr.mw_new = RKey{rkey};
  wr.mw_bind = to_mw_bind(*info);
  builder_of(qp).begin_bind(wr, *mw);
}

void wr_atomic_write(ibv_qp_ex* qp, u32 rkey, u64 address, const void* word) {
  const ibv_data_buf buffer{.addr = const_cast<void*>(word), .length = sizeof(u64)};
  builder_of(qp).begin(remote_request(qp, SendOp::kAtomicWrite, rkey, address));
  builder_of(qp).set_inline({&buffer, 1});
}

// The length of a whole region is the peer's to know.
void wr_flush(ibv_qp_ex* qp, u32 rkey, u64 address, std::size_t length, u8 type, u8 level) {
  const bool is_known = type != 0 && (type & ~(kFlushGlobal | kFlushPersistent)) == 0 &&
                        (level == kFlushRange || level == kFlushRegion);
  if (!is_known) return builder_of(qp).fail(PostError::kBadOpcode);
  if (level == kFlushRegion) length = 0;
  if (length > kMaxMessageSize) return builder_of(qp).fail(PostError::kMessageTooLong);
  SendWR wr = remote_request(qp, SendOp::kFlush, rkey, address);
  wr.flush = {.global = (type & kFlushGlobal) != 0,
              .persistent = (type & kFlushPersistent) != 0,
              .selectivity = static_cast<FlushSelectivity>(level)};
  wr.flush_length = static_cast<u32>(length);
  builder_of(qp).begin(wr);
}

// --- what the last operation works on

void wr_set_sge(ibv_qp_ex* qp, u32 lkey, u64 address, u32 length) {
  const ibv_sge sge{.addr = address, .length = length, .lkey = lkey};
  builder_of(qp).set_sges({&sge, 1});
}

void wr_set_sge_list(ibv_qp_ex* qp, std::size_t count, const ibv_sge* list) {
  builder_of(qp).set_sges({list, count});
}

void wr_set_inline_data(ibv_qp_ex* qp, void* address, std::size_t length) {
  const ibv_data_buf buffer{.addr = address, .length = length};
  builder_of(qp).set_inline({&buffer, 1});
}

void wr_set_inline_data_list(ibv_qp_ex* qp, std::size_t count, const ibv_data_buf* list) {
  builder_of(qp).set_inline({list, count});
}

void wr_set_ud_addr(ibv_qp_ex* qp, ibv_ah* ah, u32 remote_qpn, u32 remote_qkey) {
  if (ah == nullptr) return builder_of(qp).fail(PostError::kBadDestination);
  builder_of(qp).set_destination(AHObject::of(ah).path, QPN{remote_qpn}, QKey{remote_qkey});
}

void wr_set_xrc_srqn(ibv_qp_ex* qp, u32 remote_srqn) { builder_of(qp).set_xrc_srq(remote_srqn); }

// --- the critical section

void wr_start(ibv_qp_ex* qp) {
  SendBuilder& builder = builder_of(qp);
  builder.building.lock();
  builder.start();
}

PostError post_all(QPObject& qp, std::span<const SendWR> requests) {
  auto session = qp.owner().enter();
  const PostError error = session->post_sends(qp.queue, requests, session.now());
  if (!session->has_output()) session.end_sent();
  if (!checks::active()) return error;
  if (error == PostError::kOk) {
    for (const SendWR& request : requests) checks::posted(qp, request);
  } else {
    checks::refused(qp, error, session->attributes_of(qp.queue).state);
  }
  return error;
}

int wr_complete(ibv_qp_ex* qp) {
  QPObject& self = QPObject::of(qp);
  const std::lock_guard building(self.builder->building, std::adopt_lock);  // since wr_start()
  PostError error = self.builder->error();
  if (error == PostError::kOk) error = post_all(self, self.builder->requests());
  if (error == PostError::kOk) self.builder->rename_windows();
  return refuse(to_errno(error));
}

void wr_abort(ibv_qp_ex* qp) { builder_of(qp).building.unlock(); }

}  // namespace

u64 buildable_operations(QPType type) {
  constexpr u64 kSends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  constexpr u64 kWrites = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
  constexpr u64 kReadsAndAtomics = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                   IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  constexpr u64 kConfirmed = kQPExWithFlush | IBV_QP_EX_WITH_ATOMIC_WRITE;
  constexpr u64 kWindows = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
  switch (type) {
    case QPType::kRC:
    case QPType::kXRCInitiator:
      return kSends | kWrites | kReadsAndAtomics | kConfirmed | kWindows |
             IBV_QP_EX_WITH_SEND_WITH_INV;
    case QPType::kUC: return kSends | kWrites | kWindows;
    case QPType::kUD: return kSends;
    case QPType::kXRCTarget:
    case QPType::kRawPacket: return 0;
  }
  CHECK_UNREACHABLE();
}

void enable_building(QPObject& qp, u64 operations, const SendQueueLimits& limits) {
  qp.builder = std::make_unique<SendBuilder>(limits);
  const auto offer = [operations](u64 operation, auto& function, auto* ours) {
    if ((operations & operation) != 0) function = ours;
  };
  offer(IBV_QP_EX_WITH_SEND, qp.wr_send, guarded<wr_send>);
  offer(IBV_QP_EX_WITH_SEND_WITH_IMM, qp.wr_send_imm, guarded<wr_send_imm>);
  offer(IBV_QP_EX_WITH_SEND_WITH_INV, qp.wr_send_inv, guarded<wr_send_inv>);
  offer(IBV_QP_EX_WITH_RDMA_WRITE, qp.wr_rdma_write, guarded<wr_rdma_write>);
  offer(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, qp.wr_rdma_write_imm, guarded<wr_rdma_write_imm>);
  offer(IBV_QP_EX_WITH_RDMA_READ, qp.wr_rdma_read, guarded<wr_rdma_read>);
  offer(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, qp.wr_atomic_cmp_swp, guarded<wr_atomic_cmp_swp>);
  offer(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, qp.wr_atomic_fetch_add, guarded<wr_atomic_fetch_add>);
  offer(IBV_QP_EX_WITH_ATOMIC_WRITE, qp.wr_atomic_write, guarded<wr_atomic_write>);
  offer(kQPExWithFlush, qp.wr_flush, guarded<wr_flush>);
  offer(IBV_QP_EX_WITH_LOCAL_INV, qp.wr_local_inv, guarded<wr_local_inv>);
  offer(IBV_QP_EX_WITH_BIND_MW, qp.wr_bind_mw, guarded<wr_bind_mw>);
  qp.wr_set_sge = guarded<wr_set_sge>;
  qp.wr_set_sge_list = guarded<wr_set_sge_list>;
  qp.wr_set_inline_data = guarded<wr_set_inline_data>;
  qp.wr_set_inline_data_list = guarded<wr_set_inline_data_list>;
  qp.wr_set_ud_addr = guarded<wr_set_ud_addr>;
  qp.wr_set_xrc_srqn = guarded<wr_set_xrc_srqn>;
  qp.wr_start = guarded<wr_start>;
  qp.wr_complete = guarded<wr_complete>;
  qp.wr_abort = guarded<wr_abort>;
}

}  // namespace verbena::abi
