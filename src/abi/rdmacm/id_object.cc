#include "abi/rdmacm/id_object.h"

#include <endian.h>

#include "abi/ibverbs/check/for_rdmacm.h"
#include "abi/ibverbs/translate.h"
#include "host/os/random.h"

namespace verbena::rdmacm {

IdObject::IdObject(ChannelObject& events_to, void* user, rdma_port_space space, ibv_qp_type type)
    : rdma_cm_id{}, rq_psn(static_cast<u32>(host::random_u64())) {
  rdma_cm_id::channel = &events_to;
  rdma_cm_id::context = user;
  rdma_cm_id::ps = space;
  rdma_cm_id::qp_type = type;
}

IdObject::~IdObject() {
  verbena_checks_destroyed(this);
  withdraw();
  rdma_freeaddrinfo(resolved);
  if (is_synchronous) delete &ChannelObject::of(channel);
}

void IdObject::withdraw() {
  neighbour.reset();
  for (const Listening& at : listening) at.connections->unlisten(at.id);
  listening.clear();
  if (connection() != CommId{}) place.device->connections->abandon(connection());
  is_over = true;
  port.release();
  const auto unread = take_unread();
  account.on_settled(unread.size());
}

// The caller destroys the events outside of the lock: a request is an ID with a connection.
std::vector<std::unique_ptr<EventObject>> IdObject::take_unread() {
  const std::lock_guard lock(channel_mutex);
  return ChannelObject::of(channel).take_events_of(*this);
}

void IdObject::push(std::unique_ptr<EventObject> new_event) {
  const std::lock_guard lock(channel_mutex);
  account.on_queued();
  ChannelObject::of(channel).push(std::move(new_event));
}

void IdObject::push(int type, int status) {
  push(std::make_unique<EventObject>(*this, type, status));
}

u64 IdObject::move_to(ChannelObject& to) {
  const std::lock_guard lock(channel_mutex);
  auto unread = ChannelObject::of(channel).take_events_of(*this);
  const u64 read = account.queued() - unread.size();
  for (auto& waiting : unread) to.push(std::move(waiting));
  channel = &to;
  return read;
}

ChannelObject& IdObject::events_to() {
  const std::lock_guard lock(channel_mutex);
  return ChannelObject::of(channel);
}

SocketEndpoint IdObject::source() const {
  return SocketEndpoint::from(&route.addr.src_addr).value_or(SocketEndpoint{});
}

SocketEndpoint IdObject::destination() const {
  return SocketEndpoint::from(&route.addr.dst_addr).value_or(SocketEndpoint{});
}

void IdObject::set_device(OpenDevice& opened) {
  place.device = &opened;
  verbs = opened.verbs;
  port_num = kPort;
  if (pd == nullptr) pd = opened.pd;
  route.addr.addr.ibaddr.pkey = htobe16(kDefaultPKey.value);
}

void IdObject::set_gids(const GID& local, const GID& remote) {
  route.addr.addr.ibaddr.sgid = abi::to_ibv(local);
  route.addr.addr.ibaddr.dgid = abi::to_ibv(remote);
}

void IdObject::publish_path() {
  path_record_ = path.record();
  route.path_rec = &path_record_;
  route.num_paths = 1;
}

}  // namespace verbena::rdmacm
