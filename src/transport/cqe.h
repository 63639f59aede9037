// CQE: one completion. IBTA Vol 1, 11.4.2.1; status values 11.6.2.
#pragma once

#include "base/time.h"
#include "base/types.h"

namespace verbena {

enum class WQEStatus : u8 {
  kSuccess,
  kLocalLength,           // IBV_WC_LOC_LEN_ERR
  kLocalQPOperation,      // IBV_WC_LOC_QP_OP_ERR
  kLocalProtection,       // IBV_WC_LOC_PROT_ERR
  kFlushed,               // IBV_WC_WR_FLUSH_ERR
  kMWBind,                // IBV_WC_MW_BIND_ERR
  kBadResponse,           // IBV_WC_BAD_RESP_ERR
  kLocalAccess,           // IBV_WC_LOC_ACCESS_ERR
  kRemoteInvalidRequest,  // IBV_WC_REM_INV_REQ_ERR, NAK code 1
  kRemoteAccess,          // IBV_WC_REM_ACCESS_ERR, NAK code 2
  kRemoteOperational,     // IBV_WC_REM_OP_ERR, NAK code 3
  kRetryExceeded,         // IBV_WC_RETRY_EXC_ERR
  kRNRRetryExceeded,      // IBV_WC_RNR_RETRY_EXC_ERR
};

enum class CompletionOp : u8 {
  kSend,
  kRDMAWrite,
  kRDMARead,
  kCompareSwap,
  kFetchAdd,
  kFlush,
  kAtomicWrite,
  kBindMW,
  kLocalInvalidate,
  kReceive,
  kReceiveRDMAWithImmediate,
};

constexpr bool is_receive(CompletionOp op) {
  return op == CompletionOp::kReceive || op == CompletionOp::kReceiveRDMAWithImmediate;
}

struct CQE {
  u64 wr_id = 0;
  WQEStatus status = WQEStatus::kSuccess;
  CompletionOp op = CompletionOp::kSend;
  bool with_immediate = false;
  bool with_invalidate = false;
  bool with_grh = false;   // UD: 40 bytes of GRH lead the receive buffer
  bool solicited = false;  // counts for a solicited-only notification (errors always do)
  u8 service_level = 0;    // UD: of the packet, or of which kind it was (ud/responder.cc)
  u16 p_key_index = 0;
  u16 source_lid = 0;   // UD receive on InfiniBand
  u32 byte_length = 0;  // receive: bytes delivered (with the GRH); READ and atomics: bytes read
  u32 immediate = 0;    // host order; or the invalidated R_Key
  QPN qp;
  QPN source_qp;  // UD receive
  u32 srq = 0;    // XRC receive: the number of the SRQ that it was posted to
  // Work queue entries that become free when this CQE is polled: its own, and those of the
  // unsignaled requests before it.
  u32 entries = 1;
  Time completed_at{};  // set by the device, when the CQE enters its CQ
  friend bool operator==(const CQE&, const CQE&) = default;
};

}  // namespace verbena
