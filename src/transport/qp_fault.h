// QPFault: a transport's record of the error that ended its QP's work, for explanations. Written
// when something fails, never on the path of good packets; no rule depends on it. IBTA Vol 1, 9.9.2
// (requester errors), 9.9.3 (responder errors).
#pragma once

#include "memory/sg_walk.h"
#include "transport/cqe.h"
#include "transport/work_request.h"
#include "wire/ib/opcode.h"

namespace verbena {

// The send WQE that completed in error.
struct RequesterFault {
  WQEStatus status = WQEStatus::kSuccess;  // kSuccess: none failed
  u64 wr_id = 0;
  SendOp op = SendOp::kSend;
  u32 length_bytes = 0;    // FLUSH: of the range
  u64 remote_address = 0;  // RDMA and atomics, with r_key
  RKey r_key{};
  Time posted{};
  bool answered = false;  // some packet of this QP has been acknowledged before
  bool started = false;   // some packet of it was sent
  RefusedSGE refused{};   // kLocalProtection
};

// The reason why a responder refused a request.
enum class Refusal : u8 {
  kNone,
  kOpcodeSequence,   // Middle without First, First within a message, ...
  kLength,           // the payload does not fit the path MTU or the RETH
  kNotEnabled,       // qp_access_flags
  kUnaligned,        // an atomic or ATOMIC WRITE
  kFlushKind,        // no such selectivity or placement type
  kTooManyReads,     // READs, atomics and others that count: more than max_dest_rd_atomic
  kUnknownSRQ,       // XRC
  kRemoteMemory,     // R_Key, bounds or right
  kReceiveTooSmall,  // the message does not fit the receive
  kReceiveMemory,    // the receive's own SGEs
  kInvalidate,       // SEND with Invalidate of a key that it may not invalidate
};

struct ResponderFault {
  Refusal refusal = Refusal::kNone;
  Opcode opcode{};         // of the packet
  u64 wr_id = 0;           // of the receive that it was using
  u64 message_bytes = 0;   // so far, and the receive's room
  u64 room_bytes = 0;      //
  u64 remote_address = 0;  // from the request, with r_key
  u64 length_bytes = 0;    //
  RKey r_key{};
  MemoryFault memory = MemoryFault::kNone;  // kRemoteMemory
  std::optional<KeyInfo> key{};             // the key that r_key names here
  RefusedSGE refused{};                     // kReceiveMemory
};

// Why the stream of an iWARP QP has ended. RFC 5040, 4.8
struct StreamFault {
  enum class What : u8 {
    kNone,
    kTerminatedByPeer,  // for the reason of its TERMINATE
    kTerminatedByUs,
    kLost,  // reset, timed out, or ended within a segment
  };
  What what = What::kNone;
  u8 layer = 0, type = 0, code = 0;  // of the TERMINATE
};

struct QPFault {
  RequesterFault requester;
  ResponderFault responder;
  StreamFault stream;
};

[[nodiscard]] inline RequesterFault requester_fault(WQEStatus status, const SendRequest& wr,
                                                    u32 length_bytes, Time posted) {
  return {.status = status,
          .wr_id = wr.wr_id,
          .op = wr.op,
          .length_bytes = wr.op == SendOp::kFlush ? wr.flush_length : length_bytes,
          .remote_address = wr.remote_address,
          .r_key = wr.r_key,
          .posted = posted};
}

}  // namespace verbena
