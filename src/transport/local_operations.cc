#include "transport/local_operations.h"

#include "base/check.h"

namespace verbena {
namespace {

bool bind(const WindowBinding& to, const QPAttributes& qp, ProtectionTable& memory) {
  return memory.bind_mw(qp.pd, qp.qpn, to.mw, to.mw_new, to.mw_bind).has_value();
}

}  // namespace

WQEStatus execute_local_operation(const SendWQE& wqe, const QPAttributes& qp,
                                  ProtectionTable& memory) {
  CHECK(is_local_operation(wqe.wr.op));
  const bool done = wqe.wr.op == SendOp::kBindMW
                        ? bind(*wqe.binding, qp, memory)
                        : memory.invalidate(qp.pd, qp.qpn, wqe.wr.invalidate) == MemoryFault::kNone;
  return done ? WQEStatus::kSuccess : WQEStatus::kMWBind;
}

}  // namespace verbena
