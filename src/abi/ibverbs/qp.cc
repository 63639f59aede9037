// Queue pairs: creation and destruction. ibv_create_qp(3), ibv_create_qp_ex(3), ibv_open_qp(3).
// Attributes: qp_attributes.cc.
#include <chrono>
#include <thread>

#include "abi/ibverbs/async_events.h"
#include "abi/ibverbs/check/hooks.h"
#include "abi/ibverbs/cq_object.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/exceptions.h"
#include "abi/ibverbs/make.h"
#include "abi/ibverbs/operations.h"
#include "abi/ibverbs/qp_ex.h"
#include "abi/ibverbs/srq_object.h"
#include "abi/ibverbs/translate.h"
#include "abi/ibverbs/undo.h"
#include "abi/ibverbs/xrc_target.h"
#include "abi/ibverbs/xrcd_object.h"
#include "host/sharing/qpn_slot.h"

namespace verbena::abi {
namespace {

bool has_receive_side(ibv_qp_type type) { return type != IBV_QPT_XRC_SEND; }

// Returns 0, or the errno. Objects of another context would be objects of another device.
int check(const ibv_pd* pd, const ibv_qp_init_attr& attr) {
  if (attr.qp_type == IBV_QPT_DRIVER) return EOPNOTSUPP;
  if (!to_qp_type(attr.qp_type) || attr.qp_type == IBV_QPT_XRC_RECV) return EINVAL;
  if (pd == nullptr || attr.send_cq == nullptr) return EINVAL;
  if (attr.send_cq->context != pd->context) return EINVAL;
  if (!has_receive_side(attr.qp_type)) return 0;
  if (attr.recv_cq == nullptr || attr.recv_cq->context != pd->context) return EINVAL;
  if (attr.srq == nullptr) return 0;
  if (attr.qp_type != IBV_QPT_RC && attr.qp_type != IBV_QPT_UD) return EINVAL;  // ibv_create_qp(3)
  return attr.srq->context == pd->context ? 0 : EINVAL;
}

QPInit to_init(ibv_pd* pd, const ibv_qp_init_attr& attr, host::EventTarget* target) {
  const bool receives = has_receive_side(attr.qp_type);
  return {.type = *to_qp_type(attr.qp_type),
          .pd = PDObject::of(pd).domain,
          .send_cq = CQObject::of(attr.send_cq).queue,
          .receive_cq = receives ? CQObject::of(attr.recv_cq).queue : nullptr,
          .srq = receives && attr.srq != nullptr ? SRQObject::of(attr.srq).queue : nullptr,
          .send = {.depth = attr.cap.max_send_wr,
                   .max_sge = attr.cap.max_send_sge,
                   .max_inline_bytes = attr.cap.max_inline_data},
          .receive = {.depth = attr.cap.max_recv_wr, .max_sge = attr.cap.max_recv_sge},
          .signal_all = attr.sq_sig_all != 0,
          .user = target};
}

// An object that has no queue yet.
std::unique_ptr<QPObject> describe(ibv_context* context, ibv_pd* pd, const ibv_qp_init_attr& attr) {
  auto qp = make<QPObject>();
  if (qp == nullptr) return fail(ENOMEM);
  qp->qp_base.context = context;
  qp->qp_base.qp_context = attr.qp_context;
  qp->qp_base.pd = pd;
  qp->qp_base.send_cq = attr.send_cq;
  qp->qp_base.recv_cq = attr.recv_cq;
  qp->qp_base.srq = attr.srq;
  qp->qp_base.state = IBV_QPS_RESET;
  qp->qp_base.qp_type = attr.qp_type;
  return qp;
}

// Nothing is left of it if this throws, but for the queue.
QPObject* adopt(std::unique_ptr<QPObject> qp, QueuePair* queue) {
  qp->queue = queue;
  qp->owner().qps.insert(qp.get());
  Undo listed([&] { qp->owner().qps.erase(qp.get()); });
  {
    auto session = qp->owner().enter();
    const QPAttributes& attributes = session->attributes_of(queue);
    qp->qp_base.qp_num = qp->qp_base.handle = attributes.qpn.value;
    qp->qp_base.state = to_ibv(attributes.state);
    checks::made(*qp, session->init_of(queue));
  }
  if (qp->xrcd != nullptr) ++qp->xrcd->users;
  if (qp->qp_base.pd != nullptr) qp->pd_use = Use(PDObject::of(qp->qp_base.pd).users);
  listed.keep();
  return qp.release();
}

// Creates; `attr.cap` becomes what was granted. nullptr and errno on failure.
QPObject* create(ibv_pd* pd, ibv_qp_init_attr& attr, u32 create_flags = 0) {
  if (const int error = check(pd, attr); error != 0) return fail(error);
  auto qp = describe(pd->context, pd, attr);
  if (qp == nullptr) return nullptr;
  QPInit init = to_init(pd, attr, qp.get());
  init.block_own_multicast = (create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) != 0;
  const Result<QueuePair*> queue = qp->owner().enter()->create_qp(init);
  if (!queue) return fail(queue.error());
  ContextObject& owner = qp->owner();
  Undo made([&] { static_cast<void>(owner.enter()->destroy_qp(*queue)); });
  QPObject* const created = adopt(std::move(qp), *queue);
  made.keep();
  attr.cap = granted_capacity(*created);
  return created;
}

QPObject* create_xrc_target(ibv_context* context, ibv_pd* pd, ibv_xrcd* xrcd,
                            ibv_qp_init_attr& attr) {
  if (xrcd == nullptr || xrcd->context != context) return fail(EINVAL);
  auto qp = describe(context, pd, attr);
  auto target = make<XRCTarget>();
  if (qp == nullptr || target == nullptr) return fail(ENOMEM);
  qp->xrcd = &XRCDObject::of(xrcd);
  host::EventTarget* const user = target.get();
  target->handles.push_back(qp.get());
  const Result<QueuePair*> queue = qp->owner().enter()->create_qp(
      {.type = QPType::kXRCTarget, .xrcd = qp->xrcd->open->domain(), .user = user});
  if (!queue) return fail(queue.error());
  ContextObject& owner = qp->owner();
  Undo made([&] { static_cast<void>(owner.enter()->destroy_qp(*queue)); });
  QPObject* const created = adopt(std::move(qp), *queue);
  made.keep();
  target.release();  // the device's user from now on
  attr.cap = granted_capacity(*created);
  return created;
}

// An XRC target goes with its last handle.
Status withdraw_queue(QPObject& qp) {
  auto session = qp.owner().enter();
  if (qp.xrcd == nullptr) {
    checks::unmaking(qp, session->counters_of(qp.queue).rnr_naks_sent);
    return session->destroy_qp(qp.queue);
  }
  XRCTarget& target = target_of(qp.queue);
  if (target.handles.size() > 1) {
    std::erase(target.handles, &qp);
  } else {
    if (const Status status = session->destroy_qp(qp.queue); status != Status::kOk) return status;
    delete &target;
  }
  --qp.xrcd->users;
  return Status::kOk;
}

u32 create_flags_of(const ibv_qp_init_attr_ex& attr) {
  return (attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 ? attr.create_flags : 0;
}

bool offered(const ibv_qp_init_attr_ex& attr) {
  constexpr u32 kOffered = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
                           IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if ((attr.comp_mask & ~kOffered) != 0) return false;
  return (create_flags_of(attr) & ~u32{IBV_QP_CREATE_BLOCK_SELF_MCAST_LB}) == 0;
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
  if (const Status status = withdraw_queue(qp); status != Status::kOk) return status;
  owner.qps.erase(&qp);
  qp.async_events.on_settled(owner.async_events->remove_if(
      [&qp](const ibv_async_event& event) { return concerns(event, &qp.qp_base); }));
  return Status::kOk;
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  if (!offered(*attr)) return fail(EOPNOTSUPP);
  const bool is_target = attr->qp_type == IBV_QPT_XRC_RECV;
  const u32 needed = is_target ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
  if ((attr->comp_mask & needed) == 0) return fail(EINVAL);
  const bool building = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  const auto type = to_qp_type(attr->qp_type);
  if (building && type && (attr->send_ops_flags & ~buildable_operations(*type)) != 0)
    return fail(EOPNOTSUPP);
  ibv_pd* const pd = (attr->comp_mask & IBV_QP_INIT_ATTR_PD) != 0 ? attr->pd : nullptr;
  ibv_qp_init_attr basic = basic_part(*attr);
  QPObject* qp = is_target ? create_xrc_target(context, pd, attr->xrcd, basic)
                           : create(pd, basic, create_flags_of(*attr));
  if (qp == nullptr) return nullptr;
  attr->cap = basic.cap;
  Undo created([qp] { static_cast<void>(ibv_destroy_qp(&qp->qp_base)); });
  if (building)
    enable_building(*qp, attr->send_ops_flags,
                    {.depth = basic.cap.max_send_wr,
                     .max_sge = basic.cap.max_send_sge,
                     .max_inline_bytes = basic.cap.max_inline_data});
  created.keep();
  return &qp->qp_base;
}

// A QP of another process is out of reach (xrcd_object.h).
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr) {
  constexpr u32 kNeeded = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  if (attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED) return fail(EOPNOTSUPP);
  if ((attr->comp_mask & kNeeded) != kNeeded || attr->qp_type != IBV_QPT_XRC_RECV ||
      attr->xrcd == nullptr || attr->xrcd->context != context)
    return fail(EINVAL);
  ibv_qp_init_attr described{};
  described.qp_type = attr->qp_type;
  if ((attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0) described.qp_context = attr->qp_context;
  auto qp = describe(context, nullptr, described);
  if (qp == nullptr) return nullptr;
  qp->xrcd = &XRCDObject::of(attr->xrcd);
  QueuePair* queue = nullptr;
  {
    auto session = qp->owner().enter();
    queue = session->find_qp(QPN{attr->qp_num});
    if (queue == nullptr &&
        host::slot_of(attr->qp_num) != host::slot_of(session->config().first_qpn.value))
      return fail(EOPNOTSUPP);
    if (queue == nullptr || session->init_of(queue).xrcd != qp->xrcd->open->domain())
      return fail(EINVAL);
    target_of(queue).handles.push_back(qp.get());
  }
  ContextObject& owner = qp->owner();
  Undo handle([&owner, queue, opened = qp.get()] {
    auto session = owner.enter();
    std::erase(target_of(queue).handles, opened);
  });
  QPObject* const opened = adopt(std::move(qp), queue);
  handle.keep();
  return &opened->qp_base;
}

void wait_for_forgotten_copies(ContextObject& owner) {
  while (owner.enter()->memory().copies().has_orphans())
    std::this_thread::sleep_for(std::chrono::microseconds(20));
}

}  // namespace verbena::abi

using namespace verbena;
using namespace verbena::abi;

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) try {
  QPObject* qp = create(pd, *attr);
  return qp == nullptr ? nullptr : &qp->qp_base;
} catch (...) {
  return fail(errno_of_exception());
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) try {
  QPObject& self = QPObject::of(qp);
  return self.builder == nullptr ? nullptr : &self;
} catch (...) {
  return fail(errno_of_exception());
}

int ibv_destroy_qp(ibv_qp* qp) try {
  QPObject& self = QPObject::of(qp);
  self.owner().adapter->receive_arrived();  // and answers it: the peer does not send it in vain
  if (const Status status = withdraw(self); status != Status::kOk) return refuse(status);
  checks::wait_until_settled(self.async_events, "asynchronous events of a QP");
  wait_for_forgotten_copies(self.owner());
  delete &self;
  return 0;
} catch (...) {
  return refuse(errno_of_exception());
}
