#include "host/encryption/key_agent.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "host/network/socket_address.h"
#include "host/os/clock.h"
#include "host/os/kernel_socket.h"
#include "host/os/socket_option.h"

namespace verbena::host {
namespace {

constexpr std::size_t kAgentStackBytes = 256 << 10;
constexpr int kBacklog = 64;
constexpr u32 kTriesBeforeTold = 2;  // a peer may be about to start
constexpr u32 kTriesBeforeFailure = 3;
constexpr Duration kFirstRetry = ms(100);
constexpr Duration kMaxRetry = sec(10);

void signal_event(const Descriptor& event) {
  const u64 one = 1;
  (void)!::write(event.get(), &one, sizeof(one));
}

void clear_event(const Descriptor& event) {
  u64 count = 0;
  (void)!::read(event.get(), &count, sizeof(count));
}

Descriptor new_event() { return Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

void tell_of_failure(const GID& peer, const std::string& why) {
  std::fprintf(stderr,
               "verbena: no key for packets to %s: %s; both hosts need the same %s, or "
               "encryption: of verbena nic\n",
               peer.to_string().c_str(), why.c_str(), kEncryptionVariable);
}

int poll_timeout_ms(Time until, Time now) {
  if (until == Time::never()) return -1;
  if (until <= now) return 0;
  return static_cast<int>(std::min<i64>((until - now).ns() / 1'000'000 + 1, 60'000));
}

}  // namespace

Expected<std::unique_ptr<KeyAgent>> KeyAgent::start(const Parts& parts,
                                                    std::span<const GID> addresses) {
  std::unique_ptr<KeyAgent> agent(new KeyAgent(parts));
  agent->wake_event_ = new_event();
  agent->result_event_ = new_event();
  if (!agent->wake_event_.is_open() || !agent->result_event_.is_open())
    return failure(errno, std::string("cannot open an eventfd: ") + std::strerror(errno));
  for (const GID& address : addresses)
    if (Expected<void> listens = agent->listen_on(address); !listens)
      return tl::unexpected(listens.error());
  if (Expected<void> started = agent->start_thread(); !started)
    return tl::unexpected(started.error());
  return agent;
}

// Each process of the host listens; the kernel spreads connections, and any of them can answer.
Expected<void> KeyAgent::listen_on(const GID& address) {
  Descriptor socket =
      open_kernel_socket(family_of(address), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
  const SocketAddress local(address, parts_.settings.port, parts_.interface_index);
  const bool listens = socket.is_open() && set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1) &&
                       set_option(socket.get(), SOL_SOCKET, SO_REUSEPORT, 1) &&
                       ::bind(socket.get(), local.data(), local.size()) == 0 &&
                       ::listen(socket.get(), kBacklog) == 0;
  if (!listens)
    return failure(errno, "TCP port " + std::to_string(parts_.settings.port) + " on " +
                              address.to_string() +
                              ", for the handshake of keys: " + std::strerror(errno) +
                              (errno == EACCES ? "; allow it to all: sysctl "
                                                 "net.ipv4.ip_unprivileged_port_start=1000, or "
                                                 "choose another with port=N on all hosts"
                                               : ""));
  listeners_.push_back(std::move(socket));
  return {};
}

// The thread takes no signals: they are the application's. SIGPIPE, too, is blocked in it.
Expected<void> KeyAgent::start_thread() {
  sigset_t all, before;
  ::sigfillset(&all);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kAgentStackBytes);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(
      &thread_, &attributes,
      [](void* self) -> void* {
        static_cast<KeyAgent*>(self)->run();
        return nullptr;
      },
      this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error != 0)
    return failure(error, std::string("cannot start a thread: ") + std::strerror(error));
  running_ = true;
  pthread_setname_np(thread_, "verbena-keys");
  return {};
}

void KeyAgent::stop() {
  if (!std::exchange(running_, false)) return;
  stopping_.store(true);
  signal_event(wake_event_);
  pthread_join(thread_, nullptr);
}

void KeyAgent::abandon() {
  running_ = false;
  listeners_.clear();
  wake_event_.reset();
  result_event_.reset();
}

void KeyAgent::request(const AssociationTarget& target) {
  {
    const std::lock_guard lock(mutex_);
    if (requests_.size() == kMaxTargets) return;
    requests_.push_back(target);
  }
  signal_event(wake_event_);
}

std::vector<KeyAgent::Agreed> KeyAgent::take_agreed() {
  clear_event(result_event_);
  const std::lock_guard lock(mutex_);
  has_agreed_.store(false, std::memory_order_relaxed);
  return std::exchange(agreed_, {});
}

void KeyAgent::post(Agreed agreed) {
  {
    const std::lock_guard lock(mutex_);
    agreed_.push_back(std::move(agreed));
    has_agreed_.store(true, std::memory_order_relaxed);
  }
  signal_event(result_event_);
}

void KeyAgent::run() {
  std::vector<pollfd> waiting;
  while (!stopping_.load()) {
    waiting.clear();
    waiting.push_back({.fd = wake_event_.get(), .events = POLLIN, .revents = 0});
    const bool takes_more = connections_.size() < kMaxConnections;
    for (const Descriptor& listener : listeners_)
      waiting.push_back({.fd = takes_more ? listener.get() : -1, .events = POLLIN, .revents = 0});
    const std::size_t first = waiting.size();
    for (const KeyConnection& connection : connections_)
      waiting.push_back({.fd = connection.fd(), .events = connection.events(), .revents = 0});
    if (::poll(waiting.data(), waiting.size(), poll_timeout_ms(next_due(), monotonic_now())) < 0 &&
        errno != EINTR)
      return;
    const Time now = monotonic_now();
    if (waiting[0].revents != 0) clear_event(wake_event_);
    const std::size_t polled = connections_.size();
    std::vector<KeyConnection> served = std::exchange(connections_, {});
    for (std::size_t i = 0; i < polled; ++i) {
      KeyConnection& connection = served[i];
      const bool is_ready = waiting[first + i].revents != 0;
      if (is_ready || now >= connection.deadline())
        serve(connection, now);
      else
        connections_.push_back(std::move(connection));
    }
    for (std::size_t i = 0; i < listeners_.size(); ++i)
      if (waiting[1 + i].revents != 0) accept_from(listeners_[i], now);
    take_requests(now);
    begin_due(now);
  }
}

Time KeyAgent::next_due() const {
  Time due = Time::never();
  for (const Target& target : targets_) due = std::min(due, target.due);
  for (const KeyConnection& connection : connections_) due = std::min(due, connection.deadline());
  return due;
}

void KeyAgent::accept_from(const Descriptor& listener, Time now) {
  while (connections_.size() < kMaxConnections) {
    sockaddr_storage from{}, to{};
    socklen_t from_size = sizeof(from), to_size = sizeof(to);
    Descriptor socket(::accept4(listener.get(), reinterpret_cast<sockaddr*>(&from), &from_size,
                                SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) return;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&to), &to_size) != 0) continue;
    const auto issue = [this](const KeyQuestion& question, const AssociationEnds& ends) {
      const auto issued = parts_.keys.issue(question.slot, ends, question.version, monotonic_now());
      return issued ? std::optional(*issued) : std::nullopt;
    };
    connections_.emplace_back(parts_.ssl, parts_.credentials, std::move(socket),
                              AssociationEnds{.sender = gid_of(from), .receiver = gid_of(to)},
                              issue, now);
  }
}

// Keeps the connection if it goes on. A client is one whose target is known.
void KeyAgent::serve(KeyConnection& connection, Time now) {
  const AssociationTarget target{.ends = connection.ends(), .slot = connection.slot()};
  const bool is_late = now >= connection.deadline();
  const KeyConnection::State state =
      is_late ? KeyConnection::State::kFailed : connection.on_ready();
  switch (state) {
    case KeyConnection::State::kGoesOn: connections_.push_back(std::move(connection)); return;
    case KeyConnection::State::kDone:
      if (connection.is_client())
        on_agreed(target, *connection.issued(), now);
      else
        counters_.issued.fetch_add(1, std::memory_order_relaxed);
      return;
    case KeyConnection::State::kFailed:
      if (connection.is_client())
        on_failure(target, is_late ? "no answer" : connection.error(), now);
      else
        counters_.refused.fetch_add(1, std::memory_order_relaxed);
      return;
  }
  CHECK_UNREACHABLE();
}

KeyAgent::Target* KeyAgent::find(const AssociationTarget& target) {
  const auto found = std::ranges::find(targets_, target, &Target::target);
  return found == targets_.end() ? nullptr : &*found;
}

void KeyAgent::take_requests(Time now) {
  std::vector<AssociationTarget> requests;
  {
    const std::lock_guard lock(mutex_);
    requests.swap(requests_);
  }
  for (const AssociationTarget& request : requests) {
    Target* const known = find(request);
    if (known == nullptr && targets_.size() < kMaxTargets)
      targets_.push_back({.target = request, .due = now, .earliest = {}, .expires = {}});
    else if (known != nullptr && known->due != Time::never())
      known->due = std::min(known->due, std::max(now, known->earliest));
  }
}

void KeyAgent::begin_due(Time now) {
  for (std::size_t i = 0; i < targets_.size();) {
    const std::size_t before = targets_.size();
    if (targets_[i].due <= now && connections_.size() < kMaxConnections) begin(targets_[i], now);
    if (targets_.size() == before) ++i;
  }
}

void KeyAgent::begin(Target& target, Time now) {
  target.due = Time::never();
  target.earliest = now + kMinInterval;
  const AssociationTarget what = target.target;
  Expected<KeyConnection> connection = KeyConnection::connect(
      parts_.ssl, parts_.credentials, what.ends, parts_.settings.port, parts_.interface_index,
      {.version = parts_.settings.version, .slot = what.slot}, now);
  if (connection)
    connections_.push_back(std::move(*connection));
  else
    on_failure(what, connection.error().message, now);
}

void KeyAgent::on_agreed(const AssociationTarget& target, const IssuedAssociation& issued,
                         Time now) {
  counters_.agreed.fetch_add(1, std::memory_order_relaxed);
  if (Target* const known = find(target)) {
    known->failures = 0;
    known->due = std::max(now + issued.renew_after, known->earliest);
    known->expires = now + issued.expires_after;
  }
  post({.target = target, .issued = issued, .error = {}});
}

// After the first tries the owner is told, and asks again when there is something to send. While a
// key is valid the agent itself goes on trying.
void KeyAgent::on_failure(const AssociationTarget& target, std::string why, Time now) {
  counters_.failed.fetch_add(1, std::memory_order_relaxed);
  Target* const known = find(target);
  if (known == nullptr) return;
  if (++known->failures == kTriesBeforeTold && told_.add(target.ends.receiver))
    tell_of_failure(target.ends.receiver, why);
  if (known->failures < kTriesBeforeFailure || now < known->expires) {
    const Duration pause =
        std::min(kFirstRetry * (i64{1} << std::min(known->failures, 10u)), kMaxRetry);
    known->due = now + pause;
    return;
  }
  std::erase_if(targets_, [&](const Target& t) { return t.target == target; });
  post({.target = target, .issued = std::nullopt, .error = std::move(why)});
}

Expected<IssuedAssociation> agree_once(const OpenSSL& ssl, const TLSCredentials& credentials,
                                       const EncryptionSettings& settings,
                                       const AssociationEnds& ends, u32 interface_index) {
  Expected<KeyConnection> connection =
      KeyConnection::connect(ssl, credentials, ends, settings.port, interface_index,
                             {.version = settings.version, .slot = 0}, monotonic_now());
  if (!connection) return tl::unexpected(connection.error());
  for (;;) {
    const Time now = monotonic_now();
    if (now >= connection->deadline()) return failure(ETIMEDOUT, "no answer");
    pollfd waiting{.fd = connection->fd(), .events = connection->events(), .revents = 0};
    if (::poll(&waiting, 1, poll_timeout_ms(connection->deadline(), now)) <= 0) continue;
    switch (connection->on_ready()) {
      case KeyConnection::State::kGoesOn: continue;
      case KeyConnection::State::kDone: return *connection->issued();
      case KeyConnection::State::kFailed: return failure(EACCES, connection->error());
    }
  }
}

}  // namespace verbena::host
