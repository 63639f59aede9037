#include "host/cm/mpa_connection_manager.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "host/os/clock.h"

namespace verbena::host {
namespace {

// A peer that does not announce its depths is assumed to have as much as we have.
MPAConfig with_depths(MPAConfig config, const DeviceLimits& limits) {
  config.ird = config.ord = limits.max_rd_atomic;
  return config;
}

// Returns true for the errors that rdma_cm reports as a refusal: nobody listens, or the listener
// hangs up.
bool is_refusal(int error) { return error == ECONNREFUSED || error == ECONNRESET; }

}  // namespace

struct MPAConnectionManager::Listener final : ReadyTarget {
  Listener(MPAConnectionManager& all, u32 number) : manager(all), id(number) {}
  ~Listener() override { manager.close(*this); }
  void on_ready(u32, Time now) override { manager.on_listener(*this, now); }

  MPAConnectionManager& manager;
  const u32 id;
  Descriptor socket;
  IPEndpoint at{};
  ConnectionTarget* target = nullptr;
  u32 backlog = 0;
  u32 waiting = 0;  // requests that the program has not read
  u32 silent = 0;   // connections without a request yet
};

struct MPAConnectionManager::Connection final : ReadyTarget {
  enum class Stage : u8 {
    kConnecting,
    kRefused,
    kSecuring,  // TLS, before MPA
    kAsking,
    kListening,
    kRequested,
    kReplying,
    kStream
  };

  Connection(MPAConnectionManager& all, u32 number, MPASetUp setting_up)
      : manager(all), id(number), set_up(std::move(setting_up)) {}
  ~Connection() override { forget(); }
  void forget() {
    const int fd = connecting.is_open() ? connecting.get() : socket.get();
    if (fd >= 0) manager.poll_.forget(fd, *this);
  }
  void on_ready(u32 events, Time now) override { manager.on_connection(*this, events, now); }

  MPAConnectionManager& manager;
  const u32 id;
  Descriptor connecting;  // the opener's, in kConnecting
  StreamSocket socket;    // the stream's, in kStream
  MPASetUp set_up;
  std::unique_ptr<StreamCapture> capture;
  Stage stage = Stage::kConnecting;
  ConnectionTarget* target = nullptr;
  bool is_told = false;      // the target knows the ID
  bool is_accepted = false;  // or ours
  bool is_rejected = false;
  bool in_backlog = false;
  [[nodiscard]] bool is_silent() const {  // and counted as that by its listener
    return listener != 0 && (stage == Stage::kSecuring || stage == Stage::kListening);
  }
  u32 listener = 0;
  IPEndpoint local{}, remote{};
  u32 segment_bytes = 0;
  Time patient_until;  // a refusal is not believed before
  QPN qpn{};
  u64 stream = 0;
  Time deadline = Time::never();
};

MPAConnectionManager::MPAConnectionManager(Adapter& adapter, Device& device, TCPPoll& poll,
                                           TCPStreams& streams, const MPAConfig& config,
                                           StreamOpener& opener, LocalPath* local,
                                           StreamEncryption* encryption)
    : adapter_(adapter),
      device_(device),
      poll_(poll),
      streams_(streams),
      config_(with_depths(config, device.config().limits)),
      opener_(opener),
      local_(local),
      identity_(identity_of(device.config())),
      encryption_(encryption) {}

MPAConnectionManager::~MPAConnectionManager() = default;

// --- what programs ask for

Result<ListenerId> MPAConnectionManager::listen(const ListenParams& params,
                                                ConnectionTarget& target) {
  const std::optional<ServicePort> service = service_port_of(params.service_id);
  if (!service || service->space != PortSpace::kTCP || !params.local_gid)
    return failure(Status::kNotSupported);
  const auto session = adapter_.enter();
  auto listener = std::make_unique<Listener>(*this, ++last_listener_);
  listener->at = {*params.local_gid, service->port};
  if (!open(*listener))
    return failure(errno == EADDRINUSE ? Status::kBusy
                   : errno == EACCES   ? Status::kPermission
                   : errno == ENOMEM   ? Status::kNoMemory
                                       : Status::kInvalidArgument);
  listener->target = &target;
  if (!spare_.is_open()) spare_ = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  listener->backlog = params.backlog;
  const ListenerId id{listener->id};
  listeners_[id.value] = std::move(listener);
  return id;
}

// The program's backlog is of requests (on_request()). A burst of connections that have not asked
// yet must not fill the kernel's queue, which would drop SYNs for a second. Returns false if it
// cannot listen; errno says why.
bool MPAConnectionManager::open(Listener& listener) {
  listener.socket =
      opener_.listen({listener.at.address, listener.at.port}, static_cast<int>(kMaxSilent));
  if (!listener.socket.is_open()) return false;
  if (poll_.watch(listener.socket.get(), EPOLLIN, listener)) return true;
  listener.socket.reset();
  errno = ENOMEM;
  return false;
}

void MPAConnectionManager::listen_again() {
  for (const auto& [id, listener] : listeners_) {
    close(*listener);
    (void)open(*listener);
  }
}

void MPAConnectionManager::close(Listener& listener) {
  if (!listener.socket.is_open()) return;
  poll_.forget(listener.socket.get(), listener);
  opener_.close_listener(std::move(listener.socket));
}

void MPAConnectionManager::unlisten(ListenerId id) {
  const auto session = adapter_.enter();
  listeners_.erase(id.value);
  std::vector<Connection*> silent;
  for (const auto& [number, connection] : connections_)
    if (connection->listener == id.value && !connection->is_told)
      silent.push_back(connection.get());
  for (Connection* const connection : silent) erase(*connection);
}

Result<CommId> MPAConnectionManager::connect(const ConnectParams& params,
                                             ConnectionTarget& target) {
  const std::optional<ServicePort> service = service_port_of(params.service_id);
  if (!service || service->space != PortSpace::kTCP) return failure(Status::kNotSupported);
  if (params.private_data.size() > MPASetUp::kMaxPrivateData)
    return failure(Status::kInvalidArgument);
  const auto session = adapter_.enter();
  MPAConfig config = config_;
  config.ird = params.responder_resources;
  config.ord = params.initiator_depth;
  Connection& connection = add(MPASetUp::active(config, params.private_data), &target);
  connection.is_told = connection.is_accepted = true;
  connection.qpn = params.qpn;
  connection.local = {params.local_gid, params.source_port};
  connection.remote = {params.remote_gid, service->port};
  connection.patient_until = session.real_now() + kRefusalPatience;
  const CommId id{connection.id};
  begin_to_connect(connection, session.real_now());
  return id;
}

void MPAConnectionManager::begin_to_connect(Connection& connection, Time now) {
  connection.stage = Connection::Stage::kConnecting;
  connection.connecting = opener_.connect({connection.remote.address, connection.remote.port},
                                          {connection.local.address, connection.local.port});
  if (!connection.connecting.is_open()) return on_refused(connection, errno, now);
  set_deadline(connection, now + kConnectPatience);
  if (!poll_.watch(connection.connecting.get(), opener_.connecting_events(), connection))
    lose(connection, ENOMEM);
}

// A server may be about to listen, as perftest's is for its second connection.
void MPAConnectionManager::on_refused(Connection& connection, int error, Time now) {
  if (error != ECONNREFUSED || now >= connection.patient_until)
    return refuse(connection, error, {});
  connection.forget();
  connection.connecting.reset();
  connection.stage = Connection::Stage::kRefused;
  set_deadline(connection, now + kRefusalPause);
}

void MPAConnectionManager::abandon(CommId id) {
  const auto session = adapter_.enter();
  if (Connection* const connection = find(id)) erase(*connection);
}

Status MPAConnectionManager::accept(CommId id, const AcceptParams& params) {
  const auto session = adapter_.enter();
  Connection* const connection = find(id);
  if (connection == nullptr) return Status::kNotFound;
  if (connection->stage != Connection::Stage::kRequested ||
      params.private_data.size() > MPASetUp::kMaxPrivateData)
    return Status::kInvalidArgument;
  connection->set_up.accept(params.responder_resources, params.initiator_depth,
                            params.private_data);
  connection->is_accepted = true;
  leave_backlog(*connection);
  const Result<u64> stream = open_stream(*connection, params.qpn, session.real_now());
  if (!stream) {
    erase(*connection);
    return stream.error();
  }
  connection->stage = Connection::Stage::kReplying;
  set_deadline(*connection, session.real_now() + kConnectPatience);
  if (!flush(*connection)) {
    lose(*connection, ECONNRESET);
    return Status::kOk;
  }
  if (connection->set_up.to_send().empty())
    establish(*connection, {}, session.real_now());
  else
    watch(*connection, EPOLLOUT);
  return Status::kOk;
}

Status MPAConnectionManager::reject(CommId id, const RejectParams& params) {
  const auto session = adapter_.enter();
  Connection* const connection = find(id);
  if (connection == nullptr) return Status::kNotFound;
  if (connection->stage != Connection::Stage::kRequested ||
      params.private_data.size() > MPASetUp::kMaxPrivateData)
    return Status::kInvalidArgument;
  connection->set_up.reject(params.private_data);
  (void)flush(*connection);
  erase(*connection);
  return Status::kOk;
}

// The program has moved the QP to Error, or has one that we cannot see; its stream ends then.
Status MPAConnectionManager::disconnect(CommId id) {
  const auto session = adapter_.enter();
  Connection* const connection = find(id);
  if (connection == nullptr) return Status::kNotFound;
  if (connection->stage != Connection::Stage::kStream) return Status::kInvalidArgument;
  if (QueuePair* const qp = device_.streams().find(connection->qpn, connection->stream)) {
    QPModify to_error;
    to_error.state = QPState::kError;
    to_error.set(QPField::kState);
    (void)device_.modify_qp(qp, to_error, session.now());
  }
  return Status::kOk;
}

Status MPAConnectionManager::take_request(CommId id) {
  const auto session = adapter_.enter();
  Connection* const connection = find(id);
  if (connection == nullptr) return Status::kNotFound;
  leave_backlog(*connection);
  return Status::kOk;
}

// --- sockets

void MPAConnectionManager::on_listener(Listener& listener, Time now) {
  for (u32 i = 0; i < kAcceptedAtOnce; ++i) {
    std::optional<OpenedStream> opened = opener_.accept(listener.socket.get());
    if (!opened) {
      if (errno == EMFILE || errno == ENFILE)
        turn_away(listener);
      else if (errno == ENOTCONN)
        close(listener);
      return;
    }
    if (listener.silent >= kMaxSilent) continue;
    Connection& connection = add(MPASetUp::passive(config_), nullptr);
    take_stream(connection, std::move(*opened));
    connection.stage = Connection::Stage::kListening;
    connection.listener = listener.id;
    set_deadline(connection, now + kRequestPatience);
    ++listener.silent;
    begin_capture(connection, StreamCapture::Opener::kPeer);
    if (!poll_.watch(connection.socket.get(), EPOLLIN, connection))
      erase(connection);
    else if (encryption_ != nullptr)
      begin_to_secure(connection, TLSRole::kServer, now);
  }
}

// Else the connection would wait for ever, and the listener be ready all the time.
void MPAConnectionManager::turn_away(const Listener& listener) {
  spare_.reset();
  (void)opener_.accept(listener.socket.get());
  spare_ = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

MPAConnectionManager::Connection& MPAConnectionManager::add(MPASetUp set_up,
                                                            ConnectionTarget* target) {
  do ++last_connection_;
  while (last_connection_ == 0 || connections_.contains(last_connection_));
  auto made = std::make_unique<Connection>(*this, last_connection_, std::move(set_up));
  made->target = target;
  Connection& connection = *made;
  connections_[connection.id] = std::move(made);
  return connection;
}

void MPAConnectionManager::capture_to(CaptureFile& file, u32 interface) {
  capture_ = &file;
  capture_interface_ = interface;
}

void MPAConnectionManager::begin_capture(Connection& connection, StreamCapture::Opener opener) {
  if (capture_ == nullptr) return;
  connection.capture = std::make_unique<StreamCapture>(
      *capture_, capture_interface_, TCPEndpoint{connection.local.address, connection.local.port},
      TCPEndpoint{connection.remote.address, connection.remote.port}, opener);
}

void MPAConnectionManager::take_stream(Connection& connection, OpenedStream opened) {
  connection.socket = std::move(opened.socket);
  connection.local = {opened.ends.local, opened.ends.local_port};
  connection.remote = {opened.ends.remote, opened.ends.remote_port};
  connection.segment_bytes = opened.segment_bytes;
}

MPAConnectionManager::Connection* MPAConnectionManager::find(CommId id) {
  const auto found = connections_.find(id.value);
  return found == connections_.end() ? nullptr : found->second.get();
}

void MPAConnectionManager::watch(Connection& connection, u32 events) {
  poll_.change(connection.socket.get(), events, connection);
}

void MPAConnectionManager::on_connection(Connection& connection, u32 events, Time now) {
  if (connection.stage == Connection::Stage::kConnecting) return on_connected(connection, now);
  if (connection.stage == Connection::Stage::kSecuring) return secure(connection, now);
  if ((events & EPOLLOUT) != 0) {
    if (!flush(connection)) return lose(connection, ECONNRESET);
    return follow(connection, {}, now);
  }
  receive(connection, now);
}

void MPAConnectionManager::on_connected(Connection& connection, Time now) {
  const int watched = connection.connecting.get();
  std::optional<OpenedStream> opened = opener_.connected(connection.connecting);
  if (!opened && errno == EAGAIN) return;
  if (!opened) return on_refused(connection, errno, now);
  poll_.forget(watched, connection);
  connection.connecting.reset();
  take_stream(connection, std::move(*opened));
  if (!poll_.watch(connection.socket.get(), EPOLLOUT, connection)) return lose(connection, ENOMEM);
  if (encryption_ != nullptr) return begin_to_secure(connection, TLSRole::kClient, now);
  ask(connection, now);
}

void MPAConnectionManager::begin_to_secure(Connection& connection, TLSRole role, Time now) {
  connection.stage = Connection::Stage::kSecuring;
  connection.socket.secure(
      encryption_->begin(connection.socket.get(), role, connection.remote.address));
  secure(connection, now);
}

// The TLS handshake, as far as it goes now.
void MPAConnectionManager::secure(Connection& connection, Time now) {
  const TLSRole role = connection.listener == 0 ? TLSRole::kClient : TLSRole::kServer;
  switch (connection.socket.tls()->shake_hands()) {
    case TLSStream::Handshake::kGoesOn: return watch(connection, connection.socket.tls()->awaits());
    case TLSStream::Handshake::kFailed:
      encryption_->note_refused(role, connection.remote.address, connection.socket.tls()->error());
      return lose(connection, ECONNREFUSED);
    case TLSStream::Handshake::kDone: break;
  }
  encryption_->note_agreed(role);
  if (role == TLSRole::kClient) return ask(connection, now);
  connection.stage = Connection::Stage::kListening;
  watch(connection, EPOLLIN);
}

// Sends the request of MPA.
void MPAConnectionManager::ask(Connection& connection, Time now) {
  connection.stage = Connection::Stage::kAsking;
  begin_capture(connection, StreamCapture::Opener::kUs);
  set_deadline(connection, now + kReplyPatience);
  if (!flush(connection)) return lose(connection, ECONNRESET);
  watch(connection, connection.set_up.to_send().empty() ? EPOLLIN : EPOLLOUT);
}

// Returns false if the connection is lost.
bool MPAConnectionManager::flush(Connection& connection) {
  const std::span<const u8> bytes = connection.set_up.to_send();
  if (bytes.empty()) return true;
  iovec piece{.iov_base = const_cast<u8*>(bytes.data()), .iov_len = bytes.size()};
  const i64 sent = connection.socket.send({&piece, 1});
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  if (connection.capture != nullptr)
    connection.capture->on_sent(bytes.first(static_cast<std::size_t>(sent)));
  connection.set_up.on_sent(static_cast<std::size_t>(sent));
  return true;
}

// A request that waits for the program says nothing more; its end says that it is withdrawn.
void MPAConnectionManager::receive(Connection& connection, Time now) {
  std::array<u8, 1024> bytes;
  const bool only_looks = connection.stage == Connection::Stage::kRequested;
  iovec place{.iov_base = bytes.data(), .iov_len = bytes.size()};
  const i64 got = only_looks ? ::recv(connection.socket.get(), bytes.data(), bytes.size(),
                                      MSG_DONTWAIT | MSG_PEEK)
                             : connection.socket.receive({&place, 1});
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return lose(connection, got < 0 ? errno : ECONNRESET);
  if (only_looks) return watch(connection, EPOLLRDHUP);
  const Bytes come = Bytes(bytes).first(static_cast<std::size_t>(got));
  if (connection.capture != nullptr) connection.capture->on_received(come);
  if (!connection.socket.is_encrypted() && looks_like_tls(come))
    tell_of_encrypted_peer(connection.remote.address);
  const Bytes rest = connection.set_up.on_bytes(come);
  follow(connection, rest, now);
}

// Acts on the new state of the set-up.
void MPAConnectionManager::follow(Connection& connection, Bytes rest, Time now) {
  switch (connection.set_up.state()) {
    case MPASetUp::State::kSending: return watch(connection, EPOLLOUT);
    case MPASetUp::State::kAwaitsReply:
    case MPASetUp::State::kAwaitsRequest: return watch(connection, EPOLLIN);
    case MPASetUp::State::kRequested:
      if (connection.stage == Connection::Stage::kListening)
        rest.empty() ? on_request(connection) : erase(connection);
      return;
    case MPASetUp::State::kRejected:
      return refuse(connection, ECONNREFUSED, connection.set_up.private_data());
    case MPASetUp::State::kFailed: (void)flush(connection); return lose(connection, EPROTO);
    case MPASetUp::State::kAgreed: break;
  }
  if (!connection.set_up.to_send().empty()) return watch(connection, EPOLLOUT);
  if (connection.stage == Connection::Stage::kAsking &&
      !open_stream(connection, connection.qpn, now))
    return lose(connection, EINVAL);
  establish(connection, rest, now);
}

// The first bytes after a request come once it is answered: earlier bytes are an error.
void MPAConnectionManager::on_request(Connection& connection) {
  const auto found = listeners_.find(connection.listener);
  if (found == listeners_.end()) return erase(connection);
  Listener& listener = *found->second;
  --listener.silent;
  connection.stage = Connection::Stage::kRequested;
  connection.deadline = Time::never();
  if (listener.waiting >= listener.backlog) return erase(connection);
  ConnectionTarget* const target = listener.target->on_request(
      CommId{connection.id}, {.listener = ListenerId{listener.id},
                              .local = listener.at,
                              .remote = connection.remote,
                              .responder_resources = connection.set_up.peer_ird(),
                              .initiator_depth = connection.set_up.peer_ord(),
                              .private_data = connection.set_up.private_data()});
  if (target == nullptr) return erase(connection);
  connection.target = target;
  connection.is_told = connection.in_backlog = true;
  ++listener.waiting;
}

Result<u64> MPAConnectionManager::open_stream(Connection& connection, QPN qpn, Time) {
  QueuePair* const qp = device_.find_qp(qpn);
  if (qp == nullptr) return failure(Status::kInvalidArgument);
  const TCPTuple tcp = {connection.local.address, connection.remote.address, connection.local.port,
                        connection.remote.port};
  if (local_ != nullptr && tcp.is_connected()) local_->announce(tcp, qpn);
  const Result<u64> number =
      device_.streams().open(*qp,
                             {.agreement = connection.set_up.agreement(connection.segment_bytes),
                              .local = identity_.gids.front(),
                              .remote = connection.remote.address,
                              .tcp = tcp},
                             monotonic_now());
  if (!number) return number;
  connection.qpn = qpn;
  connection.stream = *number;
  by_stream_[*number] = connection.id;
  return number;
}

void MPAConnectionManager::establish(Connection& connection, Bytes rest, Time now) {
  connection.stage = Connection::Stage::kStream;
  connection.deadline = Time::never();
  poll_.forget(connection.socket.get(), connection);
  const bool is_active = connection.listener == 0;
  const StreamAgreement agreement = connection.set_up.agreement(0);
  streams_.adopt(std::move(connection.socket),
                 {.qpn = connection.qpn,
                  .number = connection.stream,
                  .peer = connection.remote.address,
                  .agreement = agreement,
                  .first = rest,
                  .capture = std::move(connection.capture)},
                 now);
  const std::span<const u8> data =
      is_active ? connection.set_up.private_data() : std::span<const u8>{};
  connection.target->on_connection_event(
      {.id = CommId{connection.id},
       .what = StreamEstablished{.responder_resources = static_cast<u8>(agreement.ird),
                                 .initiator_depth = static_cast<u8>(agreement.ord),
                                 .private_data = data}});
}

// --- ends

void MPAConnectionManager::leave_backlog(Connection& connection) {
  if (!std::exchange(connection.in_backlog, false)) return;
  if (const auto found = listeners_.find(connection.listener); found != listeners_.end())
    --found->second->waiting;
}

void MPAConnectionManager::refuse(Connection& connection, int error,
                                  std::span<const u8> private_data) {
  const CMEvent event{.id = CommId{connection.id},
                      .what = StreamRefused{.error = is_refusal(error) ? ECONNREFUSED : error,
                                            .private_data = private_data}};
  connection.target->on_connection_event(event);
  erase(connection);
}

// For a connection that is not yet a stream. A target that has not accepted it learns that the
// request is withdrawn, or nothing.
void MPAConnectionManager::lose(Connection& connection, int error) {
  if (connection.is_accepted) return refuse(connection, error, {});
  if (connection.is_told) connection.target->on_request_withdrawn();
  erase(connection);
}

// An open stream stays with its QP until that ends.
void MPAConnectionManager::erase(Connection& connection) {
  leave_backlog(connection);
  if (connection.is_silent())
    if (const auto found = listeners_.find(connection.listener); found != listeners_.end())
      --found->second->silent;
  if (connection.stream != 0) {
    by_stream_.erase(connection.stream);
    if (QueuePair* const qp = device_.streams().find(connection.qpn, connection.stream))
      device_.streams().abandon(*qp, monotonic_now());
  }
  connections_.erase(connection.id);
}

bool MPAConnectionManager::drain() {
  bool any = false;
  while (const u64 number = streams_.poll_ended()) {
    any = true;
    const auto found = by_stream_.find(number);
    if (found == by_stream_.end()) continue;
    Connection* const connection = find(CommId{found->second});
    by_stream_.erase(found);
    ConnectionTarget* const target = connection->target;
    const CommId id{connection->id};
    connection->stream = 0;
    connections_.erase(id.value);
    target->on_connection_event({.id = id, .what = StreamEnded{}});
  }
  return any;
}

void MPAConnectionManager::set_deadline(Connection& connection, Time deadline) {
  connection.deadline = deadline;
  next_timer_ = std::min(next_timer_, deadline);
}

bool MPAConnectionManager::run_due_timers(Time now) {
  if (now < next_timer_) return false;
  next_timer_ = Time::never();
  std::vector<CommId> due;
  for (const auto& [id, connection] : connections_) {
    if (connection->deadline <= now)
      due.push_back(CommId{id});
    else
      next_timer_ = std::min(next_timer_, connection->deadline);
  }
  for (const CommId id : due) {
    Connection* const connection = find(id);
    if (connection == nullptr) continue;
    if (connection->stage == Connection::Stage::kRefused)
      begin_to_connect(*connection, now);
    else
      lose(*connection, ETIMEDOUT);
  }
  return true;
}

void MPAConnectionManager::abandon_all() {
  connections_.clear();
  listeners_.clear();
}

}  // namespace verbena::host
