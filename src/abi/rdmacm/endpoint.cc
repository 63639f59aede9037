// IDs with everything at once, and synchronous requests. rdma_create_ep(3), rdma_get_request(3).
#include "abi/rdmacm/events.h"
#include "abi/rdmacm/ids.h"
#include "abi/rdmacm/results.h"

namespace verbena::rdmacm {
namespace {

constexpr int kResolveLimit_ms = 2000;

int make_passive(IdObject& id, const rdma_addrinfo& found, ibv_pd* pd,
                 const ibv_qp_init_attr* attr) {
  if (rdma_bind_addr(&id, found.ai_src_addr) != 0) return -1;
  if (pd != nullptr) id.pd = pd;
  if (attr == nullptr) return 0;
  id.accepted_qp = *attr;
  id.accepted_qp->qp_type = static_cast<ibv_qp_type>(found.ai_qp_type);
  return 0;
}

int make_active(IdObject& id, const rdma_addrinfo& found, ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (rdma_resolve_addr(&id, found.ai_src_addr, found.ai_dst_addr, kResolveLimit_ms) != 0 ||
      rdma_resolve_route(&id, kResolveLimit_ms) != 0)
    return -1;
  if (attr != nullptr) {
    attr->qp_type = static_cast<ibv_qp_type>(found.ai_qp_type);
    if (rdma_create_qp(&id, pd, attr) != 0) return -1;
  }
  const auto* data = static_cast<const u8*>(found.ai_connect);
  id.connect_data.assign(data, data + found.ai_connect_len);
  return 0;
}

// Returns 0 if a listener's event is a request, else the errno that the event stands for.
int refusal(const rdma_cm_event& event) {
  if (event.event == RDMA_CM_EVENT_REJECTED) return ECONNREFUSED;
  if (event.status != 0) return std::abs(event.status);
  return event.event == RDMA_CM_EVENT_CONNECT_REQUEST ? 0 : EINVAL;
}

int make_accepted_qp(const IdObject& listener, rdma_cm_id* id) {
  if (!listener.accepted_qp) return 0;
  ibv_qp_init_attr attr = *listener.accepted_qp;
  return rdma_create_qp(id, listener.pd, &attr);
}

}  // namespace
}  // namespace verbena::rdmacm

using namespace verbena::rdmacm;

int rdma_create_ep(rdma_cm_id** id, rdma_addrinfo* found, ibv_pd* pd, ibv_qp_init_attr* attr) try {
  if (id == nullptr || found == nullptr) return fail(EINVAL);
  IdObject* const made =
      create_id(nullptr, nullptr, static_cast<rdma_port_space>(found->ai_port_space),
                static_cast<ibv_qp_type>(found->ai_qp_type));
  if (made == nullptr) return -1;
  const bool is_passive = (found->ai_flags & RAI_PASSIVE) != 0;
  if ((is_passive ? make_passive(*made, *found, pd, attr) : make_active(*made, *found, pd, attr)) !=
      0) {
    const int error = errno;
    rdma_destroy_ep(made);
    return fail(error);
  }
  *id = made;
  return 0;
} catch (...) {
  return fail(errno_of_exception());
}

void rdma_destroy_ep(rdma_cm_id* id) try {
  if (id->qp != nullptr) rdma_destroy_qp(id);
  if (id->srq != nullptr) rdma_destroy_srq(id);
  rdma_destroy_id(id);
} catch (...) {
  verbena::abi::refuse(errno_of_exception());
}

int rdma_get_request(rdma_cm_id* listen, rdma_cm_id** id) try {
  if (listen == nullptr || id == nullptr) return fail(EINVAL);
  IdObject& self = IdObject::of(listen);
  if (!self.is_synchronous) return fail(EINVAL);
  acknowledge_own_event(self);
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(listen->channel, &event) != 0) return -1;
  int error = refusal(*event);
  if (error == 0 && make_accepted_qp(self, event->id) != 0) error = errno;
  if (error != 0) {
    listen->event = event;
    return fail(error);
  }
  *id = event->id;
  (*id)->event = event;
  return 0;
} catch (...) {
  return fail(errno_of_exception());
}
