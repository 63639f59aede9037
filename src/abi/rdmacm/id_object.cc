#include "abi/rdmacm/id_object.h"

#include <endian.h>

#include "abi/ibverbs/check/for_rdmacm.h"
#include "abi/ibverbs/translate.h"
#include "host/os/random.h"

namespace verbena::rdmacm {
namespace {

// As a request to `listener` shows it: who listens by AF_IB has peers of AF_IB.
SocketEndpoint endpoint_of(const IPEndpoint& ip, const SocketEndpoint& listener) {
  if (listener.family == AF_IB)
    return {.family = AF_IB,
            .address = ip.address,
            .port = ip.port,
            .service_prefix = listener.service_prefix};
  return {
      .family = ip.address.is_ipv4() ? AF_INET : AF_INET6, .address = ip.address, .port = ip.port};
}

// An XRC initiator and an XRC target only suit each other.
bool suits(const cm::REQ& req, ibv_qp_type listener) {
  return (req.transport_service == cm::TransportService::kExtended) ==
         (listener == IBV_QPT_XRC_RECV);
}

}  // namespace

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

// What is in them is destroyed outside of the lock: a request is an ID with a connection.
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

// --- what the adapter tells

void IdObject::on_connection_event(const CMEvent& news) {
  comm_id = news.id.value;  // the peer may answer before connect() has returned it
  if (host::is_last(news)) is_over = true;
  if (auto made = event_of(*this, news)) push(std::move(made));
}

std::unique_ptr<IdObject> IdObject::make_request(CommId id, const std::optional<IPRequest>& request,
                                                 const GID& local) {
  OpenDevice* const device = find_device(local);
  if (!request || device == nullptr) return nullptr;
  auto made = std::make_unique<IdObject>(ChannelObject::of(channel), context, ps, qp_type);
  made->state = IdState::kRequested;
  made->options = options;
  made->set_device(*device);
  made->set_source(endpoint_of(request->destination, source()));
  made->set_destination(endpoint_of(request->source, source()));
  made->comm_id = id.value;
  return made;
}

host::ConnectionTarget* IdObject::on_request(CommId id, const ConnectRequest& request) {
  const auto ip = parse_ip_request(request.req.service_id, request.req.private_data);
  if (!suits(request.req, qp_type)) return nullptr;
  std::unique_ptr<IdObject> made = make_request(id, ip, request.local_gid);
  if (made == nullptr) return nullptr;
  made->path = path_of(request, made->place.device->gid_index(request.local_gid));
  made->set_gids(made->path.local, made->path.remote);
  made->publish_path();
  made->peer = PeerAnswer::from(request.req);
  made->remote_ece = request.ece;
  made->responder_resources = made->peer->responder_resources;
  made->initiator_depth = made->peer->initiator_depth;
  IdObject* const target = made.get();
  push(event_of_request(*this, std::move(made), request.req, ip->private_data));
  return target;
}

host::ConnectionTarget* IdObject::on_request(CommId id, const StreamRequest& request) {
  const IPRequest ip{.space = PortSpace::kTCP,
                     .source = request.remote,
                     .destination = request.local,
                     .private_data = request.private_data};
  std::unique_ptr<IdObject> made = make_request(id, ip, request.local.address);
  if (made == nullptr) return nullptr;
  made->path = {.local = request.local.address,
                .remote = request.remote.address,
                .local_gid_index = made->place.device->gid_index(request.local.address),
                .mtu = made->place.device->identity().mtu};
  made->set_gids(made->path.local, made->path.remote);
  made->publish_path();
  // The peer's initiator depth is the number of READs that we have to answer, and the reverse.
  made->responder_resources = request.initiator_depth;
  made->initiator_depth = request.responder_resources;
  IdObject* const target = made.get();
  push(event_of_request(*this, std::move(made), request));
  return target;
}

host::ConnectionTarget* IdObject::on_request(CommId id, const SIDRRequest& request) {
  const auto ip = parse_ip_request(request.req.service_id, request.req.private_data);
  std::unique_ptr<IdObject> made = make_request(id, ip, request.local_gid);
  if (made == nullptr) return nullptr;
  made->path = {.local = request.local_gid,
                .remote = request.remote_gid,
                .local_gid_index = made->place.device->gid_index(request.local_gid),
                .mtu = made->place.device->identity().mtu};
  made->set_gids(made->path.local, made->path.remote);
  made->publish_path();
  IdObject* const target = made.get();
  push(event_of_request(*this, std::move(made), ip->private_data));
  return target;
}

}  // namespace verbena::rdmacm
