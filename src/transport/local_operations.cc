#include "transport/local_operations.h"

#include "base/check.h"

namespace verbena {

WQEStatus execute_local_operation(const SendWQE& wqe, const QPAttributes& qp,
                                  ProtectionTable& memory) {
  const SendWR& wr = wqe.wr;
  CHECK(is_local_operation(wr.op));
  const bool done = wr.op == SendOp::kBindMW
                        ? memory.bind_mw(qp.pd, qp.qpn, wr.mw, wr.mw_new, wr.mw_bind).has_value()
                        : memory.invalidate(qp.pd, qp.qpn, wr.invalidate) == MemoryFault::kNone;
  return done ? WQEStatus::kSuccess : WQEStatus::kMWBind;
}

}  // namespace verbena
