// Work requests as the application posts them. IBTA Vol 1, 10.8.1, 11.4.1.
#pragma once

#include <span>

#include "memory/protection_table.h"
#include "memory/sge.h"
#include "transport/address_vector.h"
#include "wire/ib/feth.h"

namespace verbena {

enum class SendOp : u8 {
  kSend,
  kSendWithImmediate,
  kSendWithInvalidate,
  kRDMAWrite,
  kRDMAWriteWithImmediate,
  kRDMARead,
  kCompareSwap,
  kFetchAdd,
  kFlush,        // RC only, as the next
  kAtomicWrite,  // 8 bytes
  kBindMW,
  kLocalInvalidate,
};

// The fields of a send request of any service.
struct SendRequest {
  u64 wr_id = 0;
  SendOp op = SendOp::kSend;
  bool signaled = false;     // a completion also on success
  bool solicited = false;    // BTH.SE on the last packet
  bool fence = false;        // wait for all earlier READs and atomics
  bool inline_data = false;  // sg_list holds plain addresses; bytes are copied now, keys unused
  FETH flush;                // kFlush, which has no sg_list
  std::span<const SGE> sg_list;

  u32 immediate = 0;       // host order, *WithImmediate
  RKey invalidate;         // kSendWithInvalidate, kLocalInvalidate
  u64 remote_address = 0;  // RDMA and atomics
  RKey r_key;
  u32 flush_length = 0;              // kFlush: of kRange
  u64 compare = 0, swap_or_add = 0;  // atomics
  u32 xrc_srq = 0;                   // XRC only
};

struct UDDestination {  // UD only: the destination of each request
  AddressVector destination;
  QPN dest_qp;
  QKey q_key;
};

struct WindowBinding {  // kBindMW only
  RKey mw;              // the window's current key
  RKey mw_new;          // the window's key after the bind
  MWBind mw_bind;
};

struct SendWR : SendRequest, UDDestination, WindowBinding {};

struct RecvWR {
  u64 wr_id = 0;
  std::span<const SGE> sg_list;
};

// The reason why a post was refused. The queue is unchanged.
enum class PostError : u8 {
  kOk,
  kQueueFull,       // ENOMEM
  kTooManySGEs,     // EINVAL
  kInlineTooLong,   // EINVAL
  kBadOpcode,       // EINVAL: not an operation of this service
  kBadState,        // EINVAL
  kMessageTooLong,  // EINVAL
  kUnaligned,       // EINVAL: an atomic's address or length
  kBadDestination,  // EINVAL: UD without a usable address
  kUnreadable,      // EFAULT: inline data that the CPU cannot read
};

}  // namespace verbena
