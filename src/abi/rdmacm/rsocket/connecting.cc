// Stream rsockets from an address to a connection. rbind, rlisten, raccept, rconnect.
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "abi/rdmacm/rsocket/connection_service.h"
#include "abi/rdmacm/rsocket/stream_socket.h"

namespace verbena::rdmacm::rsocket {
namespace {

constexpr int kResolveLimit_ms = 2000;

// Neither READ nor atomics.
rdma_conn_param param_with(const std::array<u8, ConnectionData::kSize>& offer) {
  rdma_conn_param param{};
  param.private_data = offer.data();
  param.private_data_len = static_cast<u8>(offer.size());
  param.flow_control = 1;
  param.retry_count = 7;
  param.rnr_retry_count = 7;  // as long as it takes
  return param;
}

}  // namespace

int StreamSocket::bind(const sockaddr* address, socklen_t length) {
  const Lock lock(mutex_);
  if (!is_whole(address, length) || state_ != State::kIdle) return fail(EINVAL);
  if (make_id() != 0 || rdma_bind_addr(id_, const_cast<sockaddr*>(address)) != 0) return -1;
  state_ = State::kBound;
  return 0;
}

// Once more: only the backlog changes.
int StreamSocket::listen(int backlog) {
  const Lock lock(mutex_);
  const int limit = backlog < 0 ? SOMAXCONN : std::clamp(backlog, 1, SOMAXCONN);
  if (state_ != State::kListening) {
    if (state_ != State::kIdle && state_ != State::kBound) return fail(EINVAL);
    if (!ConnectionService::instance().start()) return -1;
    if (make_id() != 0 || rdma_listen(id_, limit) != 0) return -1;
    state_ = State::kListening;
  }
  backlog_ = static_cast<std::size_t>(limit);
  ask_for_service();
  return 0;
}

int StreamSocket::open_stream() {
  auto stream = std::make_unique<Stream>();
  if (stream->open(*id_, settings_) != 0) return -1;
  stream_ = std::move(stream);
  return 0;
}

// --- the passive side

Socket::Made StreamSocket::accept() {
  Lock lock(mutex_);
  if (state_ != State::kListening) return abi::fail(EINVAL);
  const auto is_over = [&] { return !accepted_.empty() || state_ != State::kListening; };
  if (wait(lock, is_nonblocking(0), is_over) != 0) return nullptr;
  if (accepted_.empty()) return abi::fail(state_ == State::kClosed ? EBADF : EINVAL);
  std::shared_ptr<StreamSocket> made = std::move(accepted_.front());
  accepted_.pop_front();
  ask_for_service();
  made->take_new_number();
  if (is_nonblocking(0)) (void)made->control(F_SETFL, O_NONBLOCK);
  return made;
}

// The channel was made when the connection came, so its descriptor is lower than one that the
// program has opened since. Debian 12's librspreload opens one just before raccept(), as the
// program's name of the rsocket, and its select() gives the wrong answer where that name is higher
// than ours.
void StreamSocket::take_new_number() {
  number_ = host::Descriptor(::dup(channel_->fd));
  if (number_.is_open()) (void)::fcntl(number_.get(), F_SETFD, FD_CLOEXEC);
}

// As long as the queue has room.
void StreamSocket::take_requests() {
  const std::size_t before = accepted_.size();
  rdma_cm_event* event = nullptr;
  while (accepted_.size() < backlog_ && rdma_get_cm_event(channel_, &event) == 0) {
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
      if (auto made = make_accepted(*event)) accepted_.push_back(std::move(made));
    rdma_ack_cm_event(event);
  }
  ask_for_service();
  if (accepted_.size() != before) wake_all();
}

// Returns nullptr if the peer cannot be accepted: it is rejected, and the request's ID is gone.
std::shared_ptr<StreamSocket> StreamSocket::make_accepted(rdma_cm_event& request) {
  auto made = create(domain_, 0);
  if (made != nullptr) {
    made->settings_ = settings_;
    if (made->answer(request) == 0) return made;
  }
  (void)rdma_reject(request.id, nullptr, 0);
  if (made == nullptr || made->id_ == nullptr) rdma_destroy_id(request.id);
  return nullptr;
}

int StreamSocket::answer(const rdma_cm_event& request) {
  const rdma_conn_param& asked = request.param.conn;
  peer_ = ConnectionData::decode({static_cast<const u8*>(asked.private_data),
                                  asked.private_data == nullptr ? 0U : asked.private_data_len});
  if (!peer_) return fail(EPROTO);
  if (rdma_migrate_id(request.id, channel_) != 0) return -1;
  id_ = request.id;
  if (open_stream() != 0) return -1;
  stream_->meet(*peer_);
  const auto offer = stream_->offer().encode();
  rdma_conn_param param = param_with(offer);
  if (rdma_accept(id_, &param) != 0) return -1;
  become(State::kConnecting);
  return 0;
}

// --- the active side

// The next step depends on the events that follow: a neighbour may have to be asked first whether
// it is there.
int StreamSocket::begin_connect(const sockaddr* address) {
  if (!ConnectionService::instance().start() || make_id() != 0 ||
      rdma_resolve_addr(id_, nullptr, const_cast<sockaddr*>(address), kResolveLimit_ms) != 0)
    return -1;
  become(State::kConnecting);
  take_cm_events();
  return 0;
}

int StreamSocket::resolve_route() { return rdma_resolve_route(id_, kResolveLimit_ms); }

int StreamSocket::request_connection() {
  if (open_stream() != 0) return -1;
  const auto offer = stream_->offer().encode();
  rdma_conn_param param = param_with(offer);
  return rdma_connect(id_, &param);
}

int StreamSocket::connect(const sockaddr* address, socklen_t length) {
  Lock lock(mutex_);
  look();
  if (state_ == State::kConnected)
    return std::exchange(has_said_in_progress_, false) ? 0 : fail(EISCONN);
  if (state_ == State::kListening) return fail(EOPNOTSUPP);
  if (state_ == State::kRefused) {  // another try, once the program knows how this one ended
    if (error_ != 0) return fail(std::exchange(error_, 0));
    drop_connection();
    become(State::kIdle);
  }
  if (state_ == State::kIdle || state_ == State::kBound) {
    if (!is_whole(address, length)) return fail(EINVAL);
    if (begin_connect(address) != 0) {
      const int error = errno;
      become(State::kRefused);
      return fail(error);
    }
    const bool has_no_route = state_ == State::kRefused && stream_ == nullptr;
    if (is_nonblocking(0) && !has_no_route) {  // even if the peer has already answered
      has_said_in_progress_ = true;
      return fail(EINPROGRESS);
    }
  } else if (state_ == State::kConnecting && is_nonblocking(0)) {
    return fail(EALREADY);
  }
  return await_connected(lock, is_nonblocking(0));
}

// 0: it is or was connected.
int StreamSocket::await_connected(Lock& lock, bool nonblocking) {
  if (state_ == State::kConnecting &&
      wait(lock, nonblocking, [&] { return state_ != State::kConnecting; }) != 0)
    return -1;
  switch (state_) {
    case State::kConnected:
    case State::kDisconnected:
    case State::kBroken: return 0;
    case State::kRefused: return fail(error_ != 0 ? std::exchange(error_, 0) : ENOTCONN);
    case State::kClosed: return fail(EBADF);
    case State::kConnecting:
    case State::kIdle:
    case State::kBound:
    case State::kListening: break;
  }
  return fail(ENOTCONN);
}

}  // namespace verbena::rdmacm::rsocket
