// Queue pairs: creation and destruction. ibv_create_qp(3), ibv_create_qp_ex(3). Attributes:
// qp_attributes.cc.
#include "abi/ibverbs/async_events.h"
#include "abi/ibverbs/cq_object.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/make.h"
#include "abi/ibverbs/operations.h"
#include "abi/ibverbs/qp_ex.h"
#include "abi/ibverbs/srq_object.h"
#include "abi/ibverbs/translate.h"

namespace verbena::abi {
namespace {

// 0, or why not. Objects of another context would be objects of another device.
int check(const ibv_pd* pd, const ibv_qp_init_attr& attr) {
  if (pd == nullptr || attr.send_cq == nullptr || attr.recv_cq == nullptr) return EINVAL;
  if (attr.send_cq->context != pd->context || attr.recv_cq->context != pd->context) return EINVAL;
  if (attr.srq != nullptr && attr.srq->context != pd->context) return EINVAL;
  if (attr.qp_type == IBV_QPT_DRIVER) return EOPNOTSUPP;
  return to_qp_type(attr.qp_type) ? 0 : EINVAL;
}

QPInit to_init(ibv_pd* pd, const ibv_qp_init_attr& attr, host::EventTarget* target) {
  return {.type = *to_qp_type(attr.qp_type),
          .pd = PDObject::of(pd).domain,
          .send_cq = CQObject::of(attr.send_cq).queue,
          .receive_cq = CQObject::of(attr.recv_cq).queue,
          .srq = attr.srq == nullptr ? nullptr : SRQObject::of(attr.srq).queue,
          .send = {.depth = attr.cap.max_send_wr,
                   .max_sge = attr.cap.max_send_sge,
                   .max_inline_bytes = attr.cap.max_inline_data},
          .receive = {.depth = attr.cap.max_recv_wr, .max_sge = attr.cap.max_recv_sge},
          .signal_all = attr.sq_sig_all != 0,
          .user = target};
}

// Creates; `attr.cap` becomes what was granted. nullptr and errno on failure.
QPObject* create(ibv_pd* pd, ibv_qp_init_attr& attr) {
  if (const int error = check(pd, attr); error != 0) return fail(error);
  auto qp = make<QPObject>();
  if (qp == nullptr) return fail(ENOMEM);
  qp->qp_base.context = pd->context;
  qp->qp_base.qp_context = attr.qp_context;
  qp->qp_base.pd = pd;
  qp->qp_base.send_cq = attr.send_cq;
  qp->qp_base.recv_cq = attr.recv_cq;
  qp->qp_base.srq = attr.srq;
  qp->qp_base.state = IBV_QPS_RESET;
  qp->qp_base.qp_type = attr.qp_type;
  const QPInit init = to_init(pd, attr, qp.get());
  const Result<QueuePair*> queue = qp->owner().enter()->create_qp(init);
  if (!queue) return fail(queue.error());
  qp->queue = *queue;
  qp->qp_base.qp_num = qp->owner().enter()->attributes_of(qp->queue).qpn.value;
  qp->qp_base.handle = qp->qp_base.qp_num;
  attr.cap = granted_capacity(*qp);
  qp->owner().qps.insert(qp.get());
  return qp.release();
}

bool offered(const ibv_qp_init_attr_ex& attr) {
  constexpr u32 kOffered =
      IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if ((attr.comp_mask & ~kOffered) != 0) return false;
  return (attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) == 0 || attr.create_flags == 0;
}

ibv_qp_init_attr basic_part(const ibv_qp_init_attr_ex& attr) {
  return {.qp_context = attr.qp_context,
          .send_cq = attr.send_cq,
          .recv_cq = attr.recv_cq,
          .srq = attr.srq,
          .cap = attr.cap,
          .qp_type = attr.qp_type,
          .sq_sig_all = attr.sq_sig_all};
}

}  // namespace

void QPObject::on_async_event(const AsyncEvent& event) {
  async_events.on_queued();
  owner().async_events->push(to_ibv(event.type, {.qp = &qp_base}));
}

Status withdraw(QPObject& qp) {
  ContextObject& owner = qp.owner();
  if (const Status status = owner.enter()->destroy_qp(qp.queue); status != Status::kOk)
    return status;
  owner.qps.erase(&qp);
  qp.async_events.on_settled(owner.async_events->remove_if(
      [&qp](const ibv_async_event& event) { return concerns(event, &qp.qp_base); }));
  return Status::kOk;
}

ibv_qp* create_qp_ex(ibv_context*, ibv_qp_init_attr_ex* attr) {
  if (!offered(*attr)) return fail(EOPNOTSUPP);
  if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0) return fail(EINVAL);
  const bool building = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  const auto type = to_qp_type(attr->qp_type);
  if (building && type && (attr->send_ops_flags & ~buildable_operations(*type)) != 0)
    return fail(EOPNOTSUPP);
  ibv_qp_init_attr basic = basic_part(*attr);
  QPObject* qp = create(attr->pd, basic);
  if (qp == nullptr) return nullptr;
  attr->cap = basic.cap;
  if (building)
    enable_building(*qp, {.depth = basic.cap.max_send_wr,
                          .max_sge = basic.cap.max_send_sge,
                          .max_inline_bytes = basic.cap.max_inline_data});
  return &qp->qp_base;
}

}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  QPObject* qp = create(pd, *attr);
  return qp == nullptr ? nullptr : &qp->qp_base;
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  QPObject& self = QPObject::of(qp);
  return self.builder == nullptr ? nullptr : &self;
}

int ibv_destroy_qp(ibv_qp* qp) {
  QPObject& self = QPObject::of(qp);
  if (const Status status = withdraw(self); status != Status::kOk) return refuse(status);
  self.async_events.wait_until_settled();
  delete &self;
  return 0;
}
