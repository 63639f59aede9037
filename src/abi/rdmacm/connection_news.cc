// The adapter reports to an ID on its connection and on requests to it, in any thread.
#include "abi/rdmacm/events.h"
#include "abi/rdmacm/id_object.h"

namespace verbena::rdmacm {
namespace {

// Returns the endpoint as a request to `listener` shows it: a listener of AF_IB has peers of AF_IB.
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
