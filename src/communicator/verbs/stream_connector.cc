#include "communicator/verbs/stream_connector.h"

#include <fcntl.h>
#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbena::coll {
namespace {

constexpr int kResolveMilliseconds = 2000;
constexpr int kListenBacklog = 128;

struct AddressDeleter {
  void operator()(addrinfo* address) const { freeaddrinfo(address); }
};
using AddressPtr = std::unique_ptr<addrinfo, AddressDeleter>;

AddressPtr numeric_address(const std::string& host, u16 port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return nullptr;
  return AddressPtr(found);
}

tl::unexpected<Error> refused_call(const char* call) {
  return failure(VERBENA_COLL_SYSTEM, std::string(call) + ": " + std::strerror(errno));
}

rdma_conn_param parameters_of(const StreamQueuePair& queue_pair) {
  rdma_conn_param parameters{};
  parameters.qp_num = queue_pair.qp_num;
  parameters.responder_resources = parameters.initiator_depth = queue_pair.reads;
  return parameters;
}

StreamRequest request_in(const rdma_cm_event& event) {
  StreamRequest request{.magic = 0};
  const rdma_conn_param& parameters = event.param.conn;
  if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST && parameters.private_data != nullptr &&
      parameters.private_data_len >= sizeof request)
    std::memcpy(&request, parameters.private_data, sizeof request);
  return request;
}

}  // namespace

bool has_streams(const Rail& rail) {
  return rail.context()->device->transport_type == IBV_TRANSPORT_IWARP;
}

bool StreamEnd::accept(const StreamQueuePair& queue_pair, u64 lane) {
  lane_ = lane;
  rdma_conn_param parameters = parameters_of(queue_pair);
  return rdma_accept(id_, &parameters) == 0;
}

bool StreamEnd::request_connection() {
  rdma_conn_param parameters = parameters_of(queue_pair_);
  parameters.private_data = &request_;
  parameters.private_data_len = sizeof request_;
  return rdma_connect(id_, &parameters) == 0;
}

Expected<std::unique_ptr<StreamConnector>> StreamConnector::open(Rails rails, u64 incarnation) {
  std::unique_ptr<StreamConnector> connector(new StreamConnector(incarnation));
  connector->channel_ = rdma_create_event_channel();
  if (connector->channel_ == nullptr) return refused_call("rdma_create_event_channel");
  const int descriptor = connector->descriptor();
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  for (std::size_t rail = 0; rail < rails.size(); ++rail) {
    if (!has_streams(*rails[rail])) continue;
    if (const auto listening = connector->listen(rail, rails[rail]->host()); !listening)
      return tl::unexpected(listening.error());
  }
  return connector;
}

StreamConnector::~StreamConnector() {
  for (rdma_cm_id* const listener : listeners_)
    if (listener != nullptr) rdma_destroy_id(listener);
  if (channel_ != nullptr) rdma_destroy_event_channel(channel_);
}

Expected<void> StreamConnector::listen(std::size_t rail, const std::string& host) {
  const AddressPtr address = numeric_address(host, 0);
  if (address == nullptr) return failure(VERBENA_COLL_SYSTEM, "an iWARP device has no IP address");
  if (rdma_create_id(channel_, &listeners_[rail], nullptr, RDMA_PS_TCP) != 0)
    return refused_call("rdma_create_id");
  if (rdma_bind_addr(listeners_[rail], address->ai_addr) != 0)
    return refused_call("rdma_bind_addr");
  if (rdma_listen(listeners_[rail], kListenBacklog) != 0) return refused_call("rdma_listen");
  return {};
}

u16 StreamConnector::port(std::size_t rail) const {
  return listeners_[rail] == nullptr ? u16{0} : ntohs(rdma_get_src_port(listeners_[rail]));
}

Expected<std::unique_ptr<StreamEnd>> StreamConnector::dial(const Target& target,
                                                           const StreamQueuePair& queue_pair,
                                                           u64 lane) {
  const AddressPtr from = numeric_address(target.from, 0);
  const AddressPtr to = numeric_address(target.host, target.port);
  if (from == nullptr || to == nullptr)
    return failure(VERBENA_COLL_PEER, "'" + target.host + "' is no IP address");
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP) != 0)
    return refused_call("rdma_create_id");
  auto end = std::make_unique<StreamEnd>(id, lane);
  end->queue_pair_ = queue_pair;
  end->request_ = target.request;
  if (rdma_resolve_addr(id, from->ai_addr, to->ai_addr, kResolveMilliseconds) != 0)
    return refused_call("rdma_resolve_addr");
  return end;
}

std::optional<StreamEvent> StreamConnector::take(rdma_cm_event_type type, rdma_cm_id* id,
                                                 const StreamRequest& request) {
  using News = StreamEvent::Kind;
  if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
    auto end = std::make_unique<StreamEnd>(id, request.lane);
    if (request.magic != StreamRequest::kMagic || request.incarnation != incarnation_)
      return std::nullopt;
    return StreamEvent{.kind = News::kRequest, .lane = request.lane, .end = std::move(end)};
  }
  auto* const end = static_cast<StreamEnd*>(id->context);
  if (end == nullptr) return std::nullopt;  // a listener
  switch (type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(id, kResolveMilliseconds) == 0) return std::nullopt;
      return StreamEvent{.lane = end->lane_};
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      if (end->request_connection()) return std::nullopt;
      return StreamEvent{.lane = end->lane_};
    case RDMA_CM_EVENT_ESTABLISHED: return StreamEvent{.kind = News::kUp, .lane = end->lane_};
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
    case RDMA_CM_EVENT_ADDR_CHANGE: return std::nullopt;
    default: return StreamEvent{.lane = end->lane_};
  }
}

std::optional<StreamEvent> StreamConnector::poll() {
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(channel_, &event) == 0) {
    const rdma_cm_event_type type = event->event;
    rdma_cm_id* const id = event->id;
    const StreamRequest request = request_in(*event);
    rdma_ack_cm_event(event);  // first: rdma_destroy_id() waits for it
    if (auto news = take(type, id, request)) return news;
  }
  return std::nullopt;
}

}  // namespace verbena::coll
