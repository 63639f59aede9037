#include "abi/rdmacm/rsocket/stream_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>

#include <cstdlib>
#include <cstring>

#include "abi/rdmacm/rsocket/connection_service.h"

namespace verbena::rdmacm::rsocket {
namespace {

// How long a goodbye waits for the peer's device, where the program has set no SO_LINGER.
constexpr std::chrono::seconds kLinger{10};

rdma_event_channel* create_nonblocking_channel() {
  rdma_event_channel* const channel = rdma_create_event_channel();
  if (channel != nullptr)
    (void)fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
  return channel;
}

}  // namespace

StreamSocket::StreamSocket(int domain, host::Descriptor wake, int file_flags,
                           rdma_event_channel* channel)
    : Socket(domain, std::move(wake), file_flags), channel_(channel) {}

StreamSocket::~StreamSocket() {
  if (is_served_) ConnectionService::instance().ignore(channel_->fd);
  drop_connection();
  rdma_destroy_event_channel(channel_);
}

std::shared_ptr<StreamSocket> StreamSocket::create(int domain, int type) {
  host::Descriptor wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake.is_open()) return nullptr;
  rdma_event_channel* const channel = create_nonblocking_channel();
  if (channel == nullptr) return nullptr;
  const int file_flags = (type & SOCK_NONBLOCK) != 0 ? O_NONBLOCK : 0;
  return std::make_shared<StreamSocket>(domain, std::move(wake), file_flags, channel);
}

int StreamSocket::make_id() {
  return id_ != nullptr ? 0 : rdma_create_id(channel_, &id_, this, RDMA_PS_TCP);
}

void StreamSocket::drop_connection() {
  for (const Mapping& mapping : mappings_) ibv_dereg_mr(mapping.mr);
  mappings_.clear();
  if (stream_ != nullptr) (void)rdma_disconnect(id_);
  stream_.reset();
  if (id_ != nullptr) rdma_destroy_id(std::exchange(id_, nullptr));
}

void StreamSocket::become(State state, int error) {
  state_ = state;
  error_ = error;
  ask_for_service();
  wake_all();
}

// A listening socket whose queue is full leaves further requests where they are: the peers wait.
void StreamSocket::ask_for_service() {
  const bool wanted =
      state_ == State::kConnecting || (state_ == State::kListening && accepted_.size() < backlog_);
  if (wanted == is_served_) return;
  is_served_ = wanted;
  if (wanted)
    ConnectionService::instance().watch(channel_->fd, weak_from_this());
  else
    ConnectionService::instance().ignore(channel_->fd);
}

// --- news

void StreamSocket::look() {
  if (state_ == State::kListening) return take_requests();
  if (!progress()) take_cm_events();
}

// Returns true if the stream had something.
bool StreamSocket::progress() {
  if (stream_ == nullptr) return false;
  if (is_connected() && keepalive_.is_due() && stream_->can_control()) stream_->keep_alive();
  if (!stream_->progress()) return false;
  settle();
  wake_all();
  return true;
}

// Changes the state if the stream has ended or failed.
void StreamSocket::settle() {
  if (!is_connected()) return;
  if (stream_->peer_disconnected() || (stream_->peer_stopped_sending() && !writing_))
    return become(State::kDisconnected);
  if (stream_->error() != 0) become(State::kBroken, stream_->error());
}

void StreamSocket::take_cm_events() {
  if (id_ == nullptr) return;
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(channel_, &event) == 0) {
    on_cm_event(*event);
    rdma_ack_cm_event(event);
  }
}

void StreamSocket::on_cm_event(const rdma_cm_event& event) {
  const bool is_connecting = state_ == State::kConnecting;
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (is_connecting && resolve_route() != 0) fail_connecting(errno);
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      if (is_connecting && request_connection() != 0) fail_connecting(errno);
      return;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
      if (is_connecting) fail_connecting(event.status != 0 ? std::abs(event.status) : ENETUNREACH);
      return;
    case RDMA_CM_EVENT_ESTABLISHED:
      if (is_connecting) on_established(event);
      return;
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_CONNECT_ERROR:
      if (is_connecting) fail_connecting(ECONNREFUSED);
      return;
    case RDMA_CM_EVENT_UNREACHABLE:
      if (is_connecting) fail_connecting(ETIMEDOUT);
      return;
    case RDMA_CM_EVENT_DISCONNECTED:
      (void)progress();  // what came before
      (void)rdma_disconnect(id_);
      if (is_connecting || is_connected()) become(State::kDisconnected);
      return;
    case RDMA_CM_EVENT_DEVICE_REMOVAL: return become(State::kBroken, ENODEV);
    default: return;
  }
}

// To the program an accepted socket is connected: its peer has reset the connection.
void StreamSocket::fail_connecting(int error) {
  if (!peer_) return become(State::kRefused, error);
  become(State::kBroken, error == ECONNREFUSED ? ECONNRESET : error);
}

// A passive side has had the peer's data with its request.
void StreamSocket::on_established(const rdma_cm_event& event) {
  if (!peer_) {
    const rdma_conn_param& conn = event.param.conn;
    peer_ = ConnectionData::decode({static_cast<const u8*>(conn.private_data),
                                    conn.private_data == nullptr ? 0U : conn.private_data_len});
    if (!peer_) return become(State::kRefused, EPROTO);
    stream_->meet(*peer_);
  }
  stream_->start();
  become(State::kConnected);
  (void)progress();
}

short StreamSocket::ready_now(short events) {
  if (state_ == State::kListening)
    return static_cast<short>(accepted_.empty() ? 0 : POLLIN & events);
  if (state_ == State::kRefused) {
    if (error_ != 0) errno = error_;  // programs show it when they see POLLERR
    return static_cast<short>((events & (POLLIN | POLLOUT)) | POLLERR | POLLHUP);
  }
  if (stream_ == nullptr || state_ == State::kConnecting) return 0;
  int ready = 0;
  if (can_read()) ready |= POLLIN;
  if (stream_->can_send() || cannot_send()) ready |= POLLOUT;
  if (!is_connected() || stream_->peer_stopped_sending()) ready |= POLLRDHUP;
  ready &= events;
  if (state_ == State::kBroken) ready |= POLLERR;
  if (!is_connected() && !stream_->has_data()) ready |= POLLHUP;  // what is left is read first
  return static_cast<short>(ready);
}

void StreamSocket::arm(std::vector<pollfd>& to) {
  to.push_back({.fd = channel_->fd, .events = POLLIN, .revents = 0});
  if (stream_ == nullptr) return;
  stream_->arm();
  to.push_back({.fd = stream_->event_fd(), .events = POLLIN, .revents = 0});
}

// --- the end

int StreamSocket::shutdown(int how) {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return fail(EINVAL);
  Lock lock(mutex_);
  look();
  if (state_ == State::kListening && how != SHUT_WR) {
    stop_listening(State::kIdle);
    return 0;
  }
  if (state_ == State::kDisconnected || state_ == State::kBroken) {
    reading_ = reading_ && how == SHUT_WR;
    writing_ = writing_ && how == SHUT_RD;
    wake_all();
    return 0;
  }
  if (!is_connected()) return fail(ENOTCONN);
  const bool was_writing = writing_;
  if (how != SHUT_WR) reading_ = false;
  if (how != SHUT_RD) writing_ = false;
  wake_all();
  if (!writing_ && (was_writing || !reading_)) stop_sending(lock);
  return 0;
}

// With nothing to come from the peer either, that is the end of the connection.
void StreamSocket::stop_sending(Lock& lock) {
  const bool is_over = !reading_ || stream_->peer_stopped_sending();
  say_last(lock, is_over ? Control::kDisconnect : Control::kShutdown);
  if (is_over && is_connected()) become(State::kDisconnected);
}

// Returns when all that was sent has arrived, or it is no use to wait on.
void StreamSocket::say_last(Lock& lock, Control what) {
  const auto until = Clock::now() + linger();
  const auto can_say = [&] { return stream_->can_control() || !is_connected(); };
  if (wait(lock, false, can_say, until) != 0 || !is_connected()) return;
  stream_->control(what);
  (void)wait(
      lock, false, [&] { return stream_->is_sent() || !is_connected(); }, until);
}

StreamSocket::Clock::duration StreamSocket::linger() const {
  const auto found = options_.find({SOL_SOCKET, SO_LINGER});
  ::linger asked{};
  if (found == options_.end() || found->second.size() < sizeof asked) return kLinger;
  std::memcpy(&asked, found->second.data(), sizeof asked);
  return asked.l_onoff != 0 ? std::chrono::seconds(std::max(asked.l_linger, 0)) : kLinger;
}

void StreamSocket::close() {
  const int error = errno;
  Lock lock(mutex_);
  if (state_ == State::kListening) {
    stop_listening(State::kClosed);
  } else {
    lock.unlock();
    (void)shutdown(SHUT_RDWR);
    lock.lock();
    become(State::kClosed);
  }
  errno = error;
}

// The port is free when this returns. Connections that the program has not accepted end.
void StreamSocket::stop_listening(State next) {
  accepted_.clear();
  drop_connection();
  become(next);
}

// --- names

int StreamSocket::local_name(NameBuffer name) {
  const Lock lock(mutex_);
  sockaddr_storage own{};
  if (id_ != nullptr) std::memcpy(&own, rdma_get_local_addr(id_), sizeof own);
  if (own.ss_family == AF_UNSPEC) own.ss_family = static_cast<sa_family_t>(domain_);
  return give_name(reinterpret_cast<const sockaddr&>(own), name);
}

int StreamSocket::peer_name(NameBuffer name) {
  const Lock lock(mutex_);
  if (stream_ == nullptr || !peer_) return fail(ENOTCONN);
  return give_name(*rdma_get_peer_addr(id_), name);
}

}  // namespace verbena::rdmacm::rsocket
