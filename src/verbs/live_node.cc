#include "verbs/live_node.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace verbena::verbs {
namespace {

using application::Access;
using application::Address;
using application::ConnectionId;
using application::Event;
using application::Operation;
using application::QueueDepths;
using application::Region;
using application::Slice;
using application::Work;

constexpr int kResolveTimeout_ms = 2000;
constexpr u32 kFirstCompletions = 1024;
constexpr u32 kInlineBytes = 64;
constexpr Duration kLinger = us(20);
constexpr u32 kSpinsPerLook = 256;
// With longer lists the peer begins later.
constexpr std::size_t kMaxBatch = 16;

// Joins requests to a list, and gives each its slices. Returns the number of slices.
template <typename Request>
std::size_t link_list(std::span<Request> requests, std::vector<ibv_sge>& slices) {
  ibv_sge* slice = slices.data();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].sg_list = slice;
    slice += requests[i].num_sge;
    requests[i].next = i + 1 < requests.size() ? &requests[i + 1] : nullptr;
  }
  return static_cast<std::size_t>(slice - slices.data());
}
template <typename T>
void erase_first(std::vector<T>& from, std::size_t count) {
  from.erase(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count));
}
// At least each n-th request is signalled.
u32 signal_interval(const QueueDepths& depths) { return std::max<u32>(depths.sends / 4, 1); }
constexpr int kBacklog = 128;
constexpr u8 kMaxReads = 16;
constexpr u8 kRetries = 7;

enum class WorkType : u8 { kReceive, kReported, kSilent };

u64 wr_id_of(ConnectionId connection, WorkType type, u32 id) {
  return u64{static_cast<u8>(type)} << 62 | u64{connection} << 32 | id;
}
ConnectionId connection_of(u64 wr_id) { return static_cast<u32>(wr_id >> 32) & 0x3fffffff; }
WorkType type_of(u64 wr_id) { return static_cast<WorkType>(wr_id >> 62); }

sockaddr_storage socket_address(const Address& address) {
  sockaddr_storage storage{};
  if (address.ip.is_ipv4()) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port);
    in.sin_addr.s_addr = htonl(address.ip.ipv4());
    std::memcpy(&storage, &in, sizeof in);
  } else {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(address.port);
    std::memcpy(&in.sin6_addr, address.ip.bytes.data(), address.ip.bytes.size());
    std::memcpy(&storage, &in, sizeof in);
  }
  return storage;
}

Address address_from(const sockaddr* from) {
  Address address;
  if (from->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, from, sizeof in);
    return {GID::from_ipv4(ntohl(in.sin_addr.s_addr)), ntohs(in.sin_port)};
  }
  sockaddr_in6 in{};
  std::memcpy(&in, from, sizeof in);
  std::memcpy(address.ip.bytes.data(), &in.sin6_addr, address.ip.bytes.size());
  address.port = ntohs(in.sin6_port);
  return address;
}

tl::unexpected<std::string> refused(const char* call) {
  return tl::unexpected(std::string(call) + ": " + std::strerror(errno));
}

bool set_nonblocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

std::span<const u8> private_data_of(const rdma_cm_event& event) {
  return {static_cast<const u8*>(event.param.conn.private_data), event.param.conn.private_data_len};
}

}  // namespace

// --- opening and closing

LiveNode::Opened LiveNode::open_local(const Address& local) {
  std::unique_ptr<LiveNode> node(new LiveNode);
  if (rdma_create_id(nullptr, &node->anchor_, nullptr, RDMA_PS_TCP) != 0)
    return refused("rdma_create_id");
  sockaddr_storage at = socket_address({local.ip, 0});
  if (rdma_bind_addr(node->anchor_, reinterpret_cast<sockaddr*>(&at)) != 0)
    return refused("rdma_bind_addr");
  if (node->anchor_->verbs == nullptr)
    return tl::unexpected("no RDMA device has the address " + local.ip.to_string());
  if (std::string error = node->prepare(node->anchor_); !error.empty())
    return tl::unexpected(std::move(error));
  return node;
}

LiveNode::Opened LiveNode::open_towards(const Address& peer) {
  std::unique_ptr<LiveNode> node(new LiveNode);
  if (rdma_create_id(nullptr, &node->anchor_, nullptr, RDMA_PS_TCP) != 0)
    return refused("rdma_create_id");
  sockaddr_storage to = socket_address(peer);
  if (rdma_resolve_addr(node->anchor_, nullptr, reinterpret_cast<sockaddr*>(&to),
                        kResolveTimeout_ms) != 0)
    return refused("rdma_resolve_addr");
  if (node->anchor_->verbs == nullptr)
    return tl::unexpected("no RDMA device reaches " + peer.ip.to_string());
  if (std::string error = node->prepare(node->anchor_); !error.empty())
    return tl::unexpected(std::move(error));
  return node;
}

LiveNode::Opened LiveNode::open_beside(LiveNode& other) {
  std::unique_ptr<LiveNode> node(new LiveNode);
  node->owns_pd_ = false;
  node->pd_ = other.pd_;
  if (std::string error = node->prepare(other.anchor_); !error.empty())
    return tl::unexpected(std::move(error));
  return node;
}

std::string LiveNode::prepare(rdma_cm_id* bound) {
  device_ = bound->verbs;
  ibv_device_attr attributes{};
  if (const int error = ibv_query_device(device_, &attributes); error != 0)
    return std::string("ibv_query_device: ") + std::strerror(error);
  read_depth_ = static_cast<u8>(std::clamp(attributes.max_qp_init_rd_atom, 1, int{kMaxReads}));
  read_resources_ = static_cast<u8>(std::clamp(attributes.max_qp_rd_atom, 1, int{kMaxReads}));
  is_iwarp_ = device_->device->transport_type == IBV_TRANSPORT_IWARP;
  events_channel_ = rdma_create_event_channel();
  if (owns_pd_) pd_ = ibv_alloc_pd(device_);
  completion_channel_ = ibv_create_comp_channel(device_);
  if (events_channel_ == nullptr || pd_ == nullptr || completion_channel_ == nullptr)
    return std::string("the RDMA device: ") + std::strerror(errno);
  cq_ = ibv_create_cq(device_, kFirstCompletions, nullptr, completion_channel_, 0);
  if (cq_ == nullptr) return std::string("ibv_create_cq: ") + std::strerror(errno);
  cq_capacity_ = kFirstCompletions;
  max_inline_ = kInlineBytes;
  if (!set_nonblocking(events_channel_->fd) || !set_nonblocking(completion_channel_->fd))
    return std::string("fcntl: ") + std::strerror(errno);
  return "";
}

LiveNode::~LiveNode() {
  for (auto& [id, connection] : connections_) {
    if (connection.cm->qp != nullptr) {
      rdma_disconnect(connection.cm);
      rdma_destroy_qp(connection.cm);
    }
    rdma_destroy_id(connection.cm);
  }
  for (rdma_cm_id* const cm : ended_) rdma_destroy_id(cm);
  for (const Listener& listener : listeners_) rdma_destroy_id(listener.cm);
  for (auto& [key, region] : regions_) ibv_dereg_mr(region.first);
  if (cq_ != nullptr) ibv_destroy_cq(cq_);
  if (completion_channel_ != nullptr) ibv_destroy_comp_channel(completion_channel_);
  for (const Request& request : given_) rdma_destroy_id(request.cm);
  if (owns_pd_ && pd_ != nullptr) ibv_dealloc_pd(pd_);
  if (anchor_ != nullptr) rdma_destroy_id(anchor_);
  if (events_channel_ != nullptr) rdma_destroy_event_channel(events_channel_);
}

Time LiveNode::now() const {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return Time::from_ns(i64{time.tv_sec} * 1'000'000'000 + time.tv_nsec);
}

// --- memory

// The sink of an RDMA READ over iWARP needs remote write access. RFC 5040, 4.4.
int LiveNode::access_flags(Access access) const {
  int flags = IBV_ACCESS_LOCAL_WRITE;
  if (access == Access::kRemoteRead || access == Access::kRemoteReadWrite)
    flags |= IBV_ACCESS_REMOTE_READ;
  if (access == Access::kRemoteWrite || access == Access::kRemoteReadWrite || is_iwarp_)
    flags |= IBV_ACCESS_REMOTE_WRITE;
  return flags;
}

Result<Region> LiveNode::register_bytes(std::span<u8> bytes, Access access) {
  ibv_mr* const mr = ibv_reg_mr(pd_, bytes.data(), bytes.size(), access_flags(access));
  if (mr == nullptr) return failure(errno == ENOMEM ? Status::kNoMemory : Status::kInvalidArgument);
  regions_[mr->lkey].first = mr;
  return Region{.address = reinterpret_cast<u64>(bytes.data()),
                .length = bytes.size(),
                .l_key = mr->lkey,
                .r_key = mr->rkey,
                .bytes = bytes};
}

Result<Region> LiveNode::allocate(u64 bytes, application::Content, Access access) {
  const bool is_local = access == Access::kLocal;
  auto memory = PageMemory::make(
      bytes, is_local ? PageMemory::Sharing::kPrivate : PageMemory::Sharing::kCommon);
  if (!memory) return failure(Status::kNoMemory);
  Result<Region> region = register_bytes({memory->data(), bytes}, access);
  if (region) regions_[region->l_key].second = std::move(*memory);
  return region;
}

void LiveNode::deregister(const Region& region) {
  const auto found = regions_.find(region.l_key);
  if (found == regions_.end()) return;
  flush_posts();  // those that name it
  ibv_dereg_mr(found->second.first);
  regions_.erase(found);
}

// --- connections

LiveNode::Connection* LiveNode::find(ConnectionId id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : &found->second;
}

bool LiveNode::make_room(u32 completions) {
  cq_used_ += completions;
  if (cq_used_ <= cq_capacity_) return true;
  const u32 wanted = std::max(cq_used_, 2 * cq_capacity_);
  if (ibv_resize_cq(cq_, static_cast<int>(wanted)) != 0) return false;
  cq_capacity_ = wanted;
  return true;
}

bool LiveNode::make_queue_pair(Connection& connection) {
  // Requests of which the program knows by a message that they are done may still be in the queue.
  connection.send_room = connection.depths.sends + signal_interval(connection.depths);
  connection.signalled = Ring<u32>(connection.send_room);
  connection.completions = connection.send_room + connection.depths.receives;
  if (!make_room(connection.completions)) return false;
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = connection.send_room;
  init.cap.max_recv_wr = connection.depths.receives;
  init.cap.max_send_sge = Work::kMaxSlices;
  init.cap.max_recv_sge = 1;
  init.cap.max_inline_data = max_inline_;
  ibv_qp_init_attr asked = init;
  if (rdma_create_qp(connection.cm, pd_, &asked) == 0) return true;
  init.cap.max_inline_data = max_inline_ = 0;
  init.cap.max_send_sge = 4;  // devices have at least that
  return rdma_create_qp(connection.cm, pd_, &init) == 0;
}

rdma_conn_param LiveNode::parameters(std::span<const u8> private_data) const {
  rdma_conn_param parameters{};
  parameters.private_data = private_data.data();
  parameters.private_data_len = static_cast<u8>(private_data.size());
  parameters.responder_resources = read_resources_;
  parameters.initiator_depth = read_depth_;
  parameters.retry_count = kRetries;
  parameters.rnr_retry_count = 7;  // without limit
  return parameters;
}

Status LiveNode::listen(const Address& at, const QueueDepths& depths) {
  rdma_cm_id* cm = nullptr;
  if (rdma_create_id(events_channel_, &cm, nullptr, RDMA_PS_TCP) != 0) return Status::kNoMemory;
  sockaddr_storage address = socket_address(at);
  if (rdma_bind_addr(cm, reinterpret_cast<sockaddr*>(&address)) != 0 ||
      rdma_listen(cm, kBacklog) != 0) {
    const int error = errno;
    rdma_destroy_id(cm);
    return error == EADDRINUSE ? Status::kBusy : Status::kInvalidArgument;
  }
  listeners_.push_back({cm, depths, at.port});
  return Status::kOk;
}

Result<ConnectionId> LiveNode::connect(const Address& to, const QueueDepths& depths,
                                       std::span<const u8> private_data) {
  rdma_cm_id* cm = nullptr;
  if (rdma_create_id(events_channel_, &cm, nullptr, RDMA_PS_TCP) != 0)
    return failure(Status::kNoMemory);
  const ConnectionId id = next_connection_++;
  cm->context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(id));
  sockaddr_storage address = socket_address(to);
  if (rdma_resolve_addr(cm, nullptr, reinterpret_cast<sockaddr*>(&address), kResolveTimeout_ms) !=
      0) {
    rdma_destroy_id(cm);
    return failure(Status::kNotFound);
  }
  connections_[id] = {
      .cm = cm, .depths = depths, .private_data = {private_data.begin(), private_data.end()}};
  return id;
}

void LiveNode::on_resolved(ConnectionId id, Connection& connection) {
  rdma_conn_param wanted = parameters(connection.private_data);
  if (connection.cm->verbs != device_ || !make_queue_pair(connection))
    return end(id, Event::Kind::kRefused, {});
  for (const Receive& receive : std::exchange(connection.early, {}))
    post_receive_now(connection, id, receive);
  connection.state = State::kConnecting;
  if (rdma_connect(connection.cm, &wanted) != 0) end(id, Event::Kind::kRefused, {});
}

void LiveNode::on_request(const rdma_cm_event& event) {
  const auto listener = std::ranges::find(listeners_, event.listen_id, &Listener::cm);
  CHECK(listener != listeners_.end());
  const std::span<const u8> data = private_data_of(event);
  Request request{event.id, listener->depths, listener->port, {data.begin(), data.end()}};
  LiveNode* const other = choose_ ? choose_(data) : nullptr;
  if (other == nullptr || other == this) return begin_request(request);
  leaving_.emplace_back(other, std::move(request));
}

void LiveNode::begin_request(const Request& request) {
  rdma_cm_id* const cm = request.cm;
  const ConnectionId id = next_connection_++;
  cm->context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(id));
  Connection& connection = connections_[id];
  connection = {.cm = cm, .state = State::kRequested, .depths = request.depths};
  if (cm->verbs != device_ || !make_queue_pair(connection)) {
    rdma_reject(cm, nullptr, 0);
    cq_used_ -= connection.completions;
    rdma_destroy_id(cm);
    connections_.erase(id);
    return;
  }
  tell({.kind = Event::Kind::kConnectRequest,
        .connection = id,
        .peer = address_from(rdma_get_peer_addr(cm)),
        .listen_port = request.port},
       request.private_data);
}

// Its later events go to the other node's channel.
void LiveNode::give(LiveNode& to, Request request) {
  if (rdma_migrate_id(request.cm, to.events_channel_) != 0) {
    rdma_reject(request.cm, nullptr, 0);
    rdma_destroy_id(request.cm);
    return;
  }
  const std::lock_guard lock(to.given_mutex_);
  to.given_.push_back(std::move(request));
  to.is_given_ = true;
}

void LiveNode::take_given() {
  if (!is_given_.load(std::memory_order_relaxed)) return;
  std::vector<Request> given;
  {
    const std::lock_guard lock(given_mutex_);
    given.swap(given_);
    is_given_ = false;
  }
  for (const Request& request : given) begin_request(request);
}

void LiveNode::accept(ConnectionId id, std::span<const u8> private_data) {
  Connection* const connection = find(id);
  if (connection == nullptr || connection->state != State::kRequested) return;
  rdma_conn_param wanted = parameters(private_data);
  if (rdma_accept(connection->cm, &wanted) != 0) end(id, Event::Kind::kClosed, {});
}

void LiveNode::reject(ConnectionId id, std::span<const u8> private_data) {
  Connection* const connection = find(id);
  if (connection == nullptr || connection->state != State::kRequested) return;
  rdma_reject(connection->cm, private_data.data(), static_cast<u8>(private_data.size()));
  end(id, Event::Kind::kClosed, {});
}

void LiveNode::disconnect(ConnectionId id) {
  flush_posts_of(id);
  if (find(id) != nullptr) end(id, Event::Kind::kClosed, {});
}

// Destroying the queue pair ends all access to memory before the program hears of the end.
void LiveNode::end(ConnectionId id, Event::Kind kind, std::span<const u8> private_data) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const Connection connection = std::move(found->second);
  connections_.erase(found);
  tell({.kind = kind, .connection = id}, private_data);
  if (connection.cm->qp != nullptr) {
    rdma_disconnect(connection.cm);
    rdma_destroy_qp(connection.cm);
  }
  cq_used_ -= connection.completions;
  ended_.push_back(connection.cm);
}

void LiveNode::on_connection_event(ConnectionId id, const rdma_cm_event& event) {
  Connection& connection = connections_.at(id);
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (rdma_resolve_route(connection.cm, kResolveTimeout_ms) != 0)
        end(id, Event::Kind::kRefused, {});
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED: return on_resolved(id, connection);
    case RDMA_CM_EVENT_ESTABLISHED:
      connection.state = State::kConnected;
      return tell({.kind = Event::Kind::kConnected, .connection = id}, private_data_of(event));
    case RDMA_CM_EVENT_REJECTED: return end(id, Event::Kind::kRefused, private_data_of(event));
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
      return end(
          id, connection.state == State::kRequested ? Event::Kind::kClosed : Event::Kind::kRefused,
          {});
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL: return end(id, Event::Kind::kClosed, {});
    default: return;  // the rest says nothing about a connection
  }
}

void LiveNode::on_cm_event(const rdma_cm_event& event) {
  if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) return on_request(event);
  const auto id = static_cast<ConnectionId>(reinterpret_cast<std::uintptr_t>(event.id->context));
  if (find(id) != nullptr) on_connection_event(id, event);
}

// An ID is destroyed after its last event is acknowledged: rdma_destroy_id() waits for that.
void LiveNode::take_cm_events() {
  rdma_cm_event* event = nullptr;
  take_given();
  while (rdma_get_cm_event(events_channel_, &event) == 0) {
    on_cm_event(*event);
    rdma_ack_cm_event(event);
  }
  for (auto& [to, request] : std::exchange(leaving_, {})) give(*to, std::move(request));
  for (rdma_cm_id* const cm : std::exchange(ended_, {})) rdma_destroy_id(cm);
}

// --- work

void LiveNode::post_receive(ConnectionId id, u32 work, const Slice& into) {
  Connection* const connection = find(id);
  if (connection == nullptr) return;
  if (connection->cm->qp == nullptr) return connection->early.push_back({work, into});
  post_receive_now(*connection, id, {work, into});
}

void LiveNode::post_receive_now(Connection& connection, ConnectionId id, const Receive& receive) {
  ibv_recv_wr request{};
  request.wr_id = wr_id_of(id, WorkType::kReceive, receive.id);
  request.num_sge = 1;
  note_unposted(id, connection);
  connection.receives.push_back(request);
  connection.receive_slices.push_back(
      {.addr = receive.into.address, .length = receive.into.bytes, .lkey = receive.into.l_key});
}

void LiveNode::note_unposted(ConnectionId id, Connection& connection) {
  if (!std::exchange(connection.is_unposted, true)) unposted_.push_back(id);
}

void LiveNode::flush_posts() {
  for (const ConnectionId id : std::exchange(unposted_, {})) flush_posts_of(id);
}

void LiveNode::flush_posts_of(ConnectionId id) {
  Connection* const connection = find(id);
  if (connection == nullptr) return;
  connection->is_unposted = false;
  if (!post_list(*connection)) end(id, Event::Kind::kClosed, {});
}

// Receives go first: the peer may answer at once. They wait while sends wait for room: a receive
// may be into memory that a send before it names.
bool LiveNode::post_list(Connection& connection) {
  if (connection.sends.size() <= connection.send_room && !connection.receives.empty()) {
    link_list(std::span(connection.receives), connection.receive_slices);
    ibv_recv_wr* bad = nullptr;
    if (ibv_post_recv(connection.cm->qp, connection.receives.data(), &bad) != 0) return false;
    connection.receives.clear();
    connection.receive_slices.clear();
  }
  return post_sends(connection);
}

// Posts as many as there is room for.
bool LiveNode::post_sends(Connection& connection) {
  const std::size_t count = std::min<std::size_t>(connection.sends.size(), connection.send_room);
  if (count == 0) return true;
  const std::span<ibv_send_wr> list = std::span(connection.sends).first(count);
  const std::size_t slices = link_list(list, connection.send_slices);
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(connection.cm->qp, list.data(), &bad) != 0) return false;
  for (const ibv_send_wr& request : list) {
    ++connection.uncompleted;
    if ((request.send_flags & IBV_SEND_SIGNALED) != 0)
      connection.signalled.push(std::exchange(connection.uncompleted, 0));
  }
  connection.send_room -= static_cast<u32>(count);
  erase_first(connection.sends, count);
  erase_first(connection.send_slices, slices);
  return true;
}

// A work request leaves the send queue when it, or a later one, has a completion. So one in some
// silent requests is signalled.
bool LiveNode::must_signal(Connection& connection, bool is_reported) {
  const bool is_due = ++connection.unsignalled >= signal_interval(connection.depths);
  if (!is_reported && !is_due) return false;
  connection.unsignalled = 0;
  return true;
}

void LiveNode::on_sent(ConnectionId id, Connection& connection) {
  connection.send_room += connection.signalled.pop();
  if (!connection.sends.empty() || !connection.receives.empty()) note_unposted(id, connection);
}

void LiveNode::post(ConnectionId id, const Work& work) {
  Connection* const connection = find(id);
  if (connection == nullptr || connection->cm->qp == nullptr) return;
  CHECK(work.local.size() <= Work::kMaxSlices);
  note_unposted(id, *connection);
  u32 bytes = 0;
  for (const Slice& slice : work.local) {
    connection->send_slices.push_back(
        {.addr = slice.address, .length = slice.bytes, .lkey = slice.l_key});
    bytes += slice.bytes;
  }
  const bool is_reported = work.report == application::Report::kAlways;
  ibv_send_wr request{};
  request.wr_id = wr_id_of(id, is_reported ? WorkType::kReported : WorkType::kSilent, work.id);
  request.num_sge = static_cast<int>(work.local.size());
  if (must_signal(*connection, is_reported)) request.send_flags = IBV_SEND_SIGNALED;
  if (work.operation != Operation::kRead && bytes <= max_inline_)
    request.send_flags |= IBV_SEND_INLINE;
  request.opcode = work.operation == Operation::kSend    ? IBV_WR_SEND
                   : work.operation == Operation::kWrite ? IBV_WR_RDMA_WRITE
                                                         : IBV_WR_RDMA_READ;
  if (work.operation != Operation::kSend) {
    request.wr.rdma.remote_addr = work.remote_address;
    request.wr.rdma.rkey = work.r_key;
  } else if (work.invalidate) {
    request.opcode = IBV_WR_SEND_WITH_INV;
    request.invalidate_rkey = *work.invalidate;
  }
  connection->sends.push_back(request);
  if (connection->sends.size() >= kMaxBatch) flush_posts_of(id);
}

void LiveNode::on_completion(const ibv_wc& completion) {
  const ConnectionId id = connection_of(completion.wr_id);
  Connection* const connection = find(id);
  if (connection == nullptr) return;
  if (completion.status != IBV_WC_SUCCESS) return end(id, Event::Kind::kClosed, {});
  const u32 work = static_cast<u32>(completion.wr_id);
  const WorkType type = type_of(completion.wr_id);
  if (type != WorkType::kReceive) on_sent(id, *connection);
  switch (type) {
    case WorkType::kSilent: return;
    case WorkType::kReported:
      return tell({.kind = Event::Kind::kDone, .connection = id, .id = work});
    case WorkType::kReceive: break;
  }
  Event event{
      .kind = Event::Kind::kReceived, .connection = id, .id = work, .bytes = completion.byte_len};
  if ((completion.wc_flags & IBV_WC_WITH_INV) != 0) event.invalidated = completion.invalidated_rkey;
  tell(event);
}

void LiveNode::take_completions() {
  const int count = ibv_poll_cq(cq_, static_cast<int>(completions_.size()), completions_.data());
  if (count > 0) last_completion_ = now();
  for (int i = 0; i < count; ++i) on_completion(completions_[static_cast<std::size_t>(i)]);
}

// --- events

void LiveNode::tell(Event event, std::span<const u8> private_data) {
  queued_.push_back({event, {private_data.begin(), private_data.end()}});
}

bool LiveNode::poll(Event& out) {
  if (queued_.empty()) {
    take_given();
    flush_posts();
    take_completions();
  }
  if (queued_.empty() && now() >= alarm_) {
    alarm_ = Time::never();
    tell({.kind = Event::Kind::kAlarm});
  }
  if (queued_.empty()) return false;
  private_data_ = std::move(queued_.front().private_data);
  out = queued_.front().event;
  out.private_data = private_data_;
  queued_.pop_front();
  return true;
}

// Asks the kernel for connection events rarely, because that is a system call.
void LiveNode::spin() {
  flush_posts();
  for (u32 i = 0; i < kSpinsPerLook && queued_.empty(); ++i) {
    if (++spins_ % kSpinsPerLook == 0) {
      pollfd channel{events_channel_->fd, POLLIN, 0};
      if (::poll(&channel, 1, 0) > 0) take_cm_events();
    }
    take_completions();
  }
}

// Polls for a moment while completions come one after another: going to sleep and waking up take
// longer than the next completion.
bool LiveNode::linger() {
  flush_posts();
  take_completions();
  const Time until = last_completion_ + kLinger;
  while (queued_.empty() && now() < until) take_completions();
  return !queued_.empty();
}

// The completion queue is armed, and polled once more, before the thread sleeps.
bool LiveNode::wait(Duration at_most, std::span<const int> descriptors) {
  if (linger()) return false;
  if (!is_armed_) {
    if (ibv_req_notify_cq(cq_, 0) != 0) return false;
    is_armed_ = true;
    take_completions();
  }
  flush_posts();  // those for which there was no room before
  std::vector<pollfd> fds{{events_channel_->fd, POLLIN, 0}, {completion_channel_->fd, POLLIN, 0}};
  for (const int fd : descriptors) fds.push_back({fd, POLLIN, 0});
  const Time begin = now(), until = std::min(alarm_, begin + at_most);
  const i64 left_ns = queued_.empty() ? std::max<i64>((until - begin).ns(), 0) : 0;
  const timespec time{.tv_sec = left_ns / 1'000'000'000, .tv_nsec = left_ns % 1'000'000'000};
  if (ppoll(fds.data(), fds.size(), &time, nullptr) <= 0) return false;
  if (fds[0].revents != 0) take_cm_events();
  const bool is_readable =
      std::any_of(fds.begin() + 2, fds.end(), [](const pollfd& fd) { return fd.revents != 0; });
  if (fds[1].revents == 0) return is_readable;
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(completion_channel_, &cq, &context) == 0) ibv_ack_cq_events(cq, 1);
  is_armed_ = false;
  return is_readable;
}

}  // namespace verbena::verbs
