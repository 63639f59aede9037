// QPs, SRQs and CQs of IDs. rdma_create_qp(3), rdma_create_srq(3). CQs that the program does not
// bring are made, with a completion channel each, and destroyed with the QP or SRQ.
#include "abi/ibverbs/errors.h"
#include "abi/rdmacm/ece.h"
#include "abi/rdmacm/multicast.h"
#include "abi/rdmacm/qp_transitions.h"
#include "abi/rdmacm/results.h"

namespace verbena::rdmacm {
namespace {

// One queue of completions; nothing is left when it fails.
int make_cq(IdObject& id, u32 size, ibv_cq*& cq, ibv_comp_channel*& channel) {
  channel = ibv_create_comp_channel(id.verbs);
  if (channel == nullptr) return -1;
  rdma_cm_id* const context = &id;  // what rdma_get_recv_comp() looks for; not the address of id
  cq = ibv_create_cq(id.verbs, static_cast<int>(size), context, channel, 0);
  if (cq != nullptr) return 0;
  const int error = errno;
  ibv_destroy_comp_channel(std::exchange(channel, nullptr));
  return fail(error);
}

void drop_cq(ibv_cq*& cq, ibv_comp_channel*& channel) {
  if (channel == nullptr) return;  // the program's own CQ, or none
  ibv_destroy_cq(std::exchange(cq, nullptr));
  ibv_destroy_comp_channel(std::exchange(channel, nullptr));
}

void drop_cqs(IdObject& id) {
  if (id.srq != nullptr && id.qp_type == IBV_QPT_XRC_RECV) return;  // the SRQ's
  drop_cq(id.recv_cq, id.recv_cq_channel);
  drop_cq(id.send_cq, id.send_cq_channel);
}

// Those that neither the program nor an earlier call has brought.
int make_missing_cqs(IdObject& id, const ibv_qp_init_attr_ex& attr) {
  const ibv_qp_cap& cap = attr.cap;
  if (attr.recv_cq == nullptr && id.recv_cq == nullptr && cap.max_recv_wr != 0 &&
      make_cq(id, cap.max_recv_wr, id.recv_cq, id.recv_cq_channel) != 0)
    return -1;
  if (attr.send_cq == nullptr && id.send_cq == nullptr && cap.max_send_wr != 0 &&
      make_cq(id, cap.max_send_wr, id.send_cq, id.send_cq_channel) != 0)
    return -1;
  return 0;
}

bool another(const ibv_cq* a, const ibv_cq* b) { return a != nullptr && b != nullptr && a != b; }

int fail_and_drop_cqs(IdObject& id) {
  const int error = errno;
  drop_cqs(id);
  return fail(error);
}

int create_qp(IdObject& id, ibv_qp_init_attr_ex& attr) {
  if (make_missing_cqs(id, attr) != 0) return fail_and_drop_cqs(id);
  if (attr.send_cq == nullptr) attr.send_cq = id.send_cq != nullptr ? id.send_cq : id.recv_cq;
  if (attr.recv_cq == nullptr) attr.recv_cq = id.recv_cq != nullptr ? id.recv_cq : id.send_cq;
  if (attr.srq == nullptr) attr.srq = id.srq;
  ibv_qp* const qp = ibv_create_qp_ex(id.verbs, &attr);
  if (qp == nullptr) return fail_and_drop_cqs(id);
  if (settle_offer(id, qp) != 0 || initialize_qp(id, qp) != 0) {
    const int error = errno;
    ibv_destroy_qp(qp);
    errno = error;
    return fail_and_drop_cqs(id);
  }
  id.qp = qp;
  id.pd = qp->pd;
  return 0;
}

// Adds what the program does not provide: the device's own domain, and a CQ.
int complete_xrc(IdObject& id, ibv_srq_init_attr_ex& attr) {
  if ((attr.comp_mask & IBV_SRQ_INIT_ATTR_XRCD) == 0 || attr.xrcd == nullptr)
    attr.xrcd = shared_xrcd(*id.place.device);
  if (attr.xrcd == nullptr) return -1;
  if ((attr.comp_mask & IBV_SRQ_INIT_ATTR_CQ) == 0 || attr.cq == nullptr) {
    if (id.recv_cq == nullptr && make_cq(id, attr.attr.max_wr, id.recv_cq, id.recv_cq_channel) != 0)
      return -1;
    attr.cq = id.recv_cq;
  }
  attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  return 0;
}

int complete_xrc(IdObject& id, ibv_qp_init_attr_ex& attr) {
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_XRCD) == 0 || attr.xrcd == nullptr)
    attr.xrcd = shared_xrcd(*id.place.device);
  attr.comp_mask |= IBV_QP_INIT_ATTR_XRCD;
  return attr.xrcd == nullptr ? -1 : 0;
}

ibv_qp_init_attr_ex extended(const ibv_qp_init_attr& attr, ibv_pd* pd) {
  ibv_qp_init_attr_ex all{};
  all.qp_context = attr.qp_context;
  all.send_cq = attr.send_cq;
  all.recv_cq = attr.recv_cq;
  all.srq = attr.srq;
  all.cap = attr.cap;
  all.qp_type = attr.qp_type;
  all.sq_sig_all = attr.sq_sig_all;
  all.comp_mask = IBV_QP_INIT_ATTR_PD;
  all.pd = pd;
  return all;
}

}  // namespace
}  // namespace verbena::rdmacm

using namespace verbena;
using namespace verbena::rdmacm;

int rdma_create_qp_ex(rdma_cm_id* id, ibv_qp_init_attr_ex* attr) try {
  if (id == nullptr || attr == nullptr || id->qp != nullptr || id->verbs == nullptr)
    return fail(EINVAL);
  if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attr->pd == nullptr) {
    attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
    attr->pd = id->pd;
  }
  if (attr->pd->context != id->verbs || another(id->recv_cq, attr->recv_cq) ||
      another(id->send_cq, attr->send_cq))
    return fail(EINVAL);
  IdObject& self = IdObject::of(id);
  if (id->qp_type == IBV_QPT_XRC_RECV && complete_xrc(self, *attr) != 0) return -1;
  return create_qp(self, *attr);
} catch (...) {
  return fail(errno_of_exception());
}

int rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attr) try {
  if (id == nullptr || attr == nullptr) return fail(EINVAL);
  ibv_qp_init_attr_ex all = extended(*attr, pd != nullptr ? pd : id->pd);
  const int created = rdma_create_qp_ex(id, &all);
  attr->send_cq = all.send_cq;
  attr->recv_cq = all.recv_cq;
  attr->srq = all.srq;
  attr->cap = all.cap;
  return created;
} catch (...) {
  return fail(errno_of_exception());
}

void rdma_destroy_qp(rdma_cm_id* id) try {
  detach_qp(IdObject::of(id));
  ibv_destroy_qp(std::exchange(id->qp, nullptr));
  drop_cqs(IdObject::of(id));
} catch (...) {
  verbena::abi::refuse(errno_of_exception());
}

int rdma_create_srq_ex(rdma_cm_id* id, ibv_srq_init_attr_ex* attr) try {
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 || id->verbs == nullptr || id->srq != nullptr)
    return fail(EINVAL);
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attr->pd == nullptr) {
    attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
    attr->pd = id->pd;
  }
  IdObject& self = IdObject::of(id);
  if (attr->srq_type == IBV_SRQT_XRC && complete_xrc(self, *attr) != 0) return -1;
  id->srq = ibv_create_srq_ex(id->verbs, attr);
  if (id->srq == nullptr) return fail_and_drop_cqs(self);
  if (id->pd == nullptr) id->pd = attr->pd;
  return 0;
} catch (...) {
  return fail(errno_of_exception());
}

int rdma_create_srq(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* attr) try {
  if (id == nullptr || attr == nullptr) return fail(EINVAL);
  ibv_srq_init_attr_ex all{};
  all.srq_context = attr->srq_context;
  all.attr = attr->attr;
  all.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  all.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
  all.pd = pd;
  const int created = rdma_create_srq_ex(id, &all);
  attr->attr = all.attr;
  return created;
} catch (...) {
  return fail(errno_of_exception());
}

void rdma_destroy_srq(rdma_cm_id* id) try {
  ibv_destroy_srq(std::exchange(id->srq, nullptr));
  drop_cqs(IdObject::of(id));
} catch (...) {
  verbena::abi::refuse(errno_of_exception());
}
