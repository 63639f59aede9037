// Extended completion queues: ibv_create_cq_ex(3).
//
// One CQE is taken at a time, when the program asks for the next, so that nothing is ever held back
// from ibv_poll_cq or from another thread.
#include "abi/ibverbs/check/hooks.h"
#include "abi/ibverbs/completion.h"
#include "abi/ibverbs/core_clock.h"
#include "abi/ibverbs/cq.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/operations.h"
#include "abi/ibverbs/pd_object.h"
#include "host/os/clock.h"

namespace verbena::abi {
namespace {

// The fields that a CQE can report. VLANs, flow tags and tag matching are not offered.
constexpr u64 kOfferedFields = u64{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                               IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
constexpr u32 kOfferedAttributes = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
constexpr u32 kOfferedFlags =
    IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;

// Returns 0, or ENOENT if the CQ is empty.
int take_next(CQObject& cq) {
  const std::span room(&cq.current, 1);
  const u32 count =
      checks::active() ? checks::poll(cq, room) : cq.owner().adapter->poll_cq(cq.queue, room);
  if (count == 0) return ENOENT;
  cq.wr_id = cq.current.wr_id;
  cq.status = to_ibv(cq.current.status);
  return 0;
}

void end_poll(ibv_cq_ex* cq) {
  CQObject& self = CQObject::of(cq);
  if (!self.single_threaded) self.polling.unlock();
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) {
  if (attr != nullptr && attr->comp_mask != 0) return EINVAL;
  CQObject& self = CQObject::of(cq);
  std::unique_lock polling(self.polling, std::defer_lock);
  if (!self.single_threaded) polling.lock();
  const int error = take_next(self);
  if (error == 0) polling.release();  // until end_poll()
  return error;
}

int next_poll(ibv_cq_ex* cq) { return take_next(CQObject::of(cq)); }

const CQE& current(ibv_cq_ex* cq) { return CQObject::of(cq).current; }

ibv_wc_opcode read_opcode(ibv_cq_ex* cq) { return to_ibv(current(cq).op); }
u32 read_vendor_err(ibv_cq_ex* cq) { return vendor_error_of(current(cq)); }
u32 read_byte_len(ibv_cq_ex* cq) { return current(cq).byte_length; }
__be32 read_imm_data(ibv_cq_ex* cq) { return immediate_of(current(cq)); }
u32 read_qp_num(ibv_cq_ex* cq) { return current(cq).qp.value; }
u32 read_src_qp(ibv_cq_ex* cq) { return current(cq).source_qp.value; }
unsigned read_wc_flags(ibv_cq_ex* cq) { return wc_flags_of(current(cq)); }
u32 read_slid(ibv_cq_ex* cq) { return current(cq).source_lid; }  // RoCE has none
u8 read_sl(ibv_cq_ex* cq) { return current(cq).service_level; }
u8 read_dlid_path_bits(ibv_cq_ex*) { return 0; }
u64 read_completion_ts(ibv_cq_ex* cq) { return ticks_of(current(cq).completed_at); }
u64 read_completion_wallclock_ns(ibv_cq_ex* cq) {
  return static_cast<u64>(host::wallclock_ns_of(current(cq).completed_at));
}

bool is_parent_domain(ibv_pd* pd, const ibv_context* context) {
  return pd != nullptr && pd->context == context && PDObject::of(pd).is_parent;
}

void enable_extended_poll(ibv_cq_ex& cq) {
  cq.start_poll = guarded<start_poll>;
  cq.next_poll = guarded<next_poll>;
  cq.end_poll = guarded<end_poll>;
  cq.read_opcode = guarded<read_opcode>;
  cq.read_vendor_err = guarded<read_vendor_err>;
  cq.read_byte_len = guarded<read_byte_len>;
  cq.read_imm_data = guarded<read_imm_data>;
  cq.read_qp_num = guarded<read_qp_num>;
  cq.read_src_qp = guarded<read_src_qp>;
  cq.read_wc_flags = guarded<read_wc_flags>;
  cq.read_slid = guarded<read_slid>;
  cq.read_sl = guarded<read_sl>;
  cq.read_dlid_path_bits = guarded<read_dlid_path_bits>;
  cq.read_completion_ts = guarded<read_completion_ts>;
  cq.read_completion_wallclock_ns = guarded<read_completion_wallclock_ns>;
}

}  // namespace

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  if ((attr->comp_mask & ~kOfferedAttributes) != 0) return fail(EOPNOTSUPP);
  const bool in_domain = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0;
  if (in_domain && !is_parent_domain(attr->parent_domain, context)) return fail(EINVAL);
  const u32 flags = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? attr->flags : 0;
  if ((flags & ~kOfferedFlags) != 0) return fail(EOPNOTSUPP);
  if ((attr->wc_flags & ~kOfferedFields) != 0) return fail(EOPNOTSUPP);
  CQObject* cq = create_cq(
      ContextObject::of(context),
      {.cqe = attr->cqe,
       .cq_context = attr->cq_context,
       .channel = attr->channel,
       .comp_vector = attr->comp_vector,
       .on_overrun = (flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0 ? OnOverrun::kOverwriteOldest
                                                                      : OnOverrun::kFail});
  if (cq == nullptr) return nullptr;
  if (in_domain) cq->parent_domain = Use(PDObject::of(attr->parent_domain).users);
  cq->single_threaded = (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
  enable_extended_poll(*cq);
  return cq;
}

}  // namespace verbena::abi
