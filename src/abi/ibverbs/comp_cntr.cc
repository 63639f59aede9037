// Completion counters. ibv_create_comp_cntr(3), ibv_qp_attach_comp_cntr(3),
// ibv_query_comp_cntr_caps(3). They count what the QP's own requests and receives complete; what
// its peer reads and writes is not counted.
#include "abi/ibverbs/comp_cntr_object.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/make.h"
#include "abi/ibverbs/qp_object.h"

namespace verbena::abi {
namespace {

constexpr u32 kMaxCounters = 65536;  // of one context
constexpr u32 kBytes = 1;            // of ibv_comp_cntr_type
constexpr u32 kOffered = kAttachSend | kAttachReceive | kAttachRDMARead | kAttachRDMAWrite;

std::vector<CountedOp> counted_ops(u32 mask) {
  std::vector<CountedOp> ops;
  if ((mask & kAttachSend) != 0) ops.push_back(CountedOp::kSend);
  if ((mask & kAttachReceive) != 0) ops.push_back(CountedOp::kReceive);
  if ((mask & kAttachRDMARead) != 0) ops.push_back(CountedOp::kRDMARead);
  if ((mask & kAttachRDMAWrite) != 0) ops.push_back(CountedOp::kRDMAWrite);
  return ops;
}

}  // namespace

Status destroy(CompCntrObject& counter) {
  if (counter.users.in_use()) return Status::kBusy;
  ContextObject::of(counter.context).comp_cntrs.erase(&counter);
  delete &counter;
  return Status::kOk;
}

}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

// Programs of later ages have a longer structure: the rest is zeros.
int _ibv_query_comp_cntr_caps(ibv_context*, ibv_comp_cntr_caps* caps, std::size_t size) try {
  const ibv_comp_cntr_caps all{
      .max_value = ~u64{0}, .max_counters = kMaxCounters, .supported_qp_attach_ops = kOffered};
  std::memset(static_cast<void*>(caps), 0, size);
  std::memcpy(static_cast<void*>(caps), &all, std::min(size, sizeof all));
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}

ibv_comp_cntr* ibv_create_comp_cntr(ibv_context* context, ibv_comp_cntr_init_attr* attr) try {
  ContextObject& owner = ContextObject::of(context);
  if (attr->comp_mask != 0 || attr->flags != 0 || attr->type > kBytes) return fail(EINVAL);
  auto made = make<CompCntrObject>();
  if (made == nullptr || owner.comp_cntrs.size() >= kMaxCounters) return fail(ENOMEM);
  made->context = context;
  made->counter.unit =
      attr->type == kBytes ? CompletionCounter::Unit::kBytes : CompletionCounter::Unit::kRequests;
  owner.comp_cntrs.insert(made.get());
  return made.release();
} catch (...) {
  return fail(errno_of_exception());
}

int ibv_destroy_comp_cntr(ibv_comp_cntr* counter) try {
  return refuse(destroy(CompCntrObject::of(counter)));
} catch (...) {
  return refuse(errno_of_exception());
}

int ibv_set_comp_cntr(ibv_comp_cntr* counter, uint64_t value) try {
  CompCntrObject::of(counter).counter.done = value;
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}
int ibv_set_err_comp_cntr(ibv_comp_cntr* counter, uint64_t value) try {
  CompCntrObject::of(counter).counter.failed = value;
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}
int ibv_inc_comp_cntr(ibv_comp_cntr* counter, uint64_t amount) try {
  CompCntrObject::of(counter).counter.done += amount;
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}
int ibv_inc_err_comp_cntr(ibv_comp_cntr* counter, uint64_t amount) try {
  CompCntrObject::of(counter).counter.failed += amount;
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}
int ibv_read_comp_cntr(ibv_comp_cntr* counter, uint64_t* value) try {
  *value = CompCntrObject::of(counter).counter.done;
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}
int ibv_read_err_comp_cntr(ibv_comp_cntr* counter, uint64_t* value) try {
  *value = CompCntrObject::of(counter).counter.failed;
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}

int ibv_qp_attach_comp_cntr(ibv_qp* qp, ibv_comp_cntr* counter,
                            ibv_qp_attach_comp_cntr_attr* attr) try {
  if (attr->comp_mask != 0 || attr->op_mask == 0 || (attr->op_mask & ~kAllAttach) != 0)
    return refuse(EINVAL);
  if ((attr->op_mask & ~kOffered) != 0) return refuse(ENOTSUP);
  if (qp->context != counter->context) return refuse(EINVAL);
  QPObject& self = QPObject::of(qp);
  CompCntrObject& attached = CompCntrObject::of(counter);
  const Status status = self.owner().enter()->attach_counter(self.queue, counted_ops(attr->op_mask),
                                                             attached.counter);
  if (status == Status::kOk) self.counter_uses.emplace_back(attached.users);
  return refuse(status);
} catch (...) {
  return refuse(errno_of_exception());
}
