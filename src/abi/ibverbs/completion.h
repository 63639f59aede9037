// A CQE as ibv_wc. IBTA Vol 1, 11.4.2.1; ibv_poll_cq(3).
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include "abi/ibverbs/newer_verbs.h"
#include "base/check.h"
#include "transport/cqe.h"

namespace verbena::abi {

constexpr ibv_wc_status to_ibv(WQEStatus status) {
  switch (status) {
    case WQEStatus::kSuccess: return IBV_WC_SUCCESS;
    case WQEStatus::kLocalLength: return IBV_WC_LOC_LEN_ERR;
    case WQEStatus::kLocalQPOperation: return IBV_WC_LOC_QP_OP_ERR;
    case WQEStatus::kLocalProtection: return IBV_WC_LOC_PROT_ERR;
    case WQEStatus::kFlushed: return IBV_WC_WR_FLUSH_ERR;  // QP in Error
    case WQEStatus::kMWBind: return IBV_WC_MW_BIND_ERR;
    case WQEStatus::kBadResponse: return IBV_WC_BAD_RESP_ERR;
    case WQEStatus::kLocalAccess: return IBV_WC_LOC_ACCESS_ERR;
    case WQEStatus::kRemoteInvalidRequest: return IBV_WC_REM_INV_REQ_ERR;  // NAK code 1
    case WQEStatus::kRemoteAccess: return IBV_WC_REM_ACCESS_ERR;           // NAK code 2
    case WQEStatus::kRemoteOperational: return IBV_WC_REM_OP_ERR;          // NAK code 3
    case WQEStatus::kRetryExceeded: return IBV_WC_RETRY_EXC_ERR;           // retry_cnt spent
    case WQEStatus::kRNRRetryExceeded: return IBV_WC_RNR_RETRY_EXC_ERR;    // rnr_retry spent
  }
  CHECK_UNREACHABLE();
}

constexpr ibv_wc_opcode to_ibv(CompletionOp op) {
  switch (op) {
    case CompletionOp::kSend: return IBV_WC_SEND;
    case CompletionOp::kRDMAWrite: return IBV_WC_RDMA_WRITE;
    case CompletionOp::kRDMARead: return IBV_WC_RDMA_READ;
    case CompletionOp::kCompareSwap: return IBV_WC_COMP_SWAP;
    case CompletionOp::kFetchAdd: return IBV_WC_FETCH_ADD;
    case CompletionOp::kFlush: return kWCFlush;
    case CompletionOp::kAtomicWrite: return kWCAtomicWrite;
    case CompletionOp::kBindMW: return IBV_WC_BIND_MW;
    case CompletionOp::kLocalInvalidate: return IBV_WC_LOCAL_INV;
    case CompletionOp::kReceive: return IBV_WC_RECV;
    case CompletionOp::kReceiveRDMAWithImmediate: return IBV_WC_RECV_RDMA_WITH_IMM;
  }
  CHECK_UNREACHABLE();
}

constexpr unsigned wc_flags_of(const CQE& cqe) {
  unsigned flags = 0;
  if (cqe.with_grh) flags |= IBV_WC_GRH;
  if (cqe.with_immediate) flags |= IBV_WC_WITH_IMM;
  if (cqe.with_invalidate) flags |= IBV_WC_WITH_INV;
  return flags;
}

// Immediate data is in network order; an invalidated R_Key in the same place is a plain number.
inline __be32 immediate_of(const CQE& cqe) {
  return cqe.with_immediate ? htobe32(cqe.immediate) : cqe.immediate;
}

// Returns the status in the core's own numbering. The core reports no other error code.
constexpr u32 vendor_error_of(const CQE& cqe) { return static_cast<u32>(cqe.status); }

// RoCE has no LIDs: slid is 0.
inline void to_ibv(const CQE& cqe, ibv_wc& wc) {
  wc.wr_id = cqe.wr_id;
  wc.status = to_ibv(cqe.status);
  wc.opcode = to_ibv(cqe.op);
  wc.vendor_err = vendor_error_of(cqe);
  wc.byte_len = cqe.byte_length;
  wc.imm_data = immediate_of(cqe);
  wc.qp_num = cqe.qp.value;
  wc.src_qp = cqe.source_qp.value;
  wc.wc_flags = wc_flags_of(cqe);
  wc.pkey_index = cqe.p_key_index;
  wc.slid = cqe.source_lid;
  wc.sl = cqe.service_level;
  wc.dlid_path_bits = 0;
}

}  // namespace verbena::abi
