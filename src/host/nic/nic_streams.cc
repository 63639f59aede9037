#include "host/nic/nic_streams.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

#include "host/links/tcp/ready_call.h"
#include "host/os/socket_option.h"

namespace verbena::host {
namespace {

constexpr int kMaxBacklog = 4096;
constexpr int kPairBufferBytes = 256 << 10;  // each way, so that processes change less often
constexpr u32 kRelayEvents = u32{EPOLLIN | EPOLLOUT | EPOLLRDHUP} | EPOLLET;

// A program's requests are not the NIC's: it gets no port that its own sockets would not get.
u16 first_port_for(uid_t user) {
  constexpr u16 kUsual = 1024;
  if (user == 0) return 0;
  int first = kUsual;
  std::ifstream("/proc/sys/net/ipv4/ip_unprivileged_port_start") >> first;
  return static_cast<u16>(first);
}

struct SocketPair {
  Descriptor ours, of_program;
};

// Our end is open unless the kernel refuses; errno says why.
SocketPair open_pair(int type) {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()) != 0) return {};
  SocketPair pair{Descriptor(ends[0]), Descriptor(ends[1])};
  for (const int end : ends) (void)set_option(end, SOL_SOCKET, SO_SNDBUF, kPairBufferBytes);
  return pair;
}

template <typename T>
bool send_nic_message(int socket, const T& message, const Descriptor& descriptor = {}) {
  const int fd = descriptor.get();
  return send_with_descriptors(socket, {reinterpret_cast<const u8*>(&message), sizeof(message)},
                               std::span(&fd, 1).first(descriptor.is_open() ? 1 : 0));
}

}  // namespace

struct NICStreams::Client {
  Client(NICStreams& streams, Descriptor control) : all(streams), socket(std::move(control)) {}
  void on_ready(u32, Time now) { all.on_client(*this, now); }

  NICStreams& all;
  Descriptor socket;
  Program program;
  u16 first_port = 0;
  ReadyCall<Client, &Client::on_ready> ready{*this, all.host_.poll};
};

struct NICStreams::Listener {
  explicit Listener(NICStreams& streams) : all(streams) {}
  void on_socket(u32, Time now) { all.on_listener(*this, now); }
  void on_door(u32, Time) { all.listeners_.erase(id); }  // the program has closed it

  NICStreams& all;
  u64 id = 0, client = 0;
  u32 number = 0;  // of the program's request
  Descriptor socket, door;
  Time paused_until = Time::never();
  ReadyCall<Listener, &Listener::on_socket> accepts{*this, all.host_.poll};
  ReadyCall<Listener, &Listener::on_door> ends{*this, all.host_.poll};
};

// A connection that the program does not have yet.
struct NICStreams::Opening {
  explicit Opening(NICStreams& streams) : all(streams) {}
  void on_socket(u32, Time now) { all.on_opening(*this, now); }
  void on_door(u32, Time) { all.openings_.erase(id); }

  NICStreams& all;
  u64 id = 0;
  u64 listener = 0;       // 0: the program has asked for it
  Descriptor door;        // of one that the program has asked for
  Descriptor connecting;  // of the opener; then the connection is in `stream` and `socket`
  OpenedStream stream;
  StreamSocket socket;
  GID peer;
  Time deadline;
  ReadyCall<Opening, &Opening::on_socket> ready{*this, all.host_.poll};
  ReadyCall<Opening, &Opening::on_door> ends{*this, all.host_.poll};
};

struct NICStreams::Relay {
  Relay(NICStreams& streams, u64 number, Descriptor program, StreamSocket network,
        NICRelay::Opener opener)
      : all(streams), id(number), relay(std::move(program), std::move(network), opener) {}
  void on_program(u32 events, Time now) {
    relay.on_program(events);
    all.on_relay(*this, now);
  }
  void on_network(u32 events, Time now) {
    relay.on_network(events);
    all.on_relay(*this, now);
  }

  NICStreams& all;
  const u64 id;
  NICRelay relay;
  bool waits_to_send = false, waits_to_receive = false;  // in a queue
  Time deadline = Time::never();
  ReadyCall<Relay, &Relay::on_program> program_ready{*this, all.host_.poll};
  ReadyCall<Relay, &Relay::on_network> network_ready{*this, all.host_.poll};
};

NICStreams::NICStreams(NICStreamHost& host, std::vector<GID> addresses, u32 interface_index)
    : host_(host), opener_(interface_index), filter_(std::move(addresses)) {}

NICStreams::~NICStreams() = default;

void NICStreams::set_limits(u32 max_streams, u32 connections_per_second) {
  max_streams_ = max_streams;
  connections_ = TokenBucket::of_requests(connections_per_second);
}

// --- programs

void NICStreams::attach(Descriptor socket, const ucred& who) {
  auto client = std::make_unique<Client>(*this, std::move(socket));
  client->program = {.id = ++last_id_, .pid = who.pid, .user = who.uid};
  client->first_port = first_port_for(who.uid);
  if (!client->ready.watch(client->socket.get(), EPOLLIN | EPOLLRDHUP)) return;
  ++counters_.attached;
  programs_.emplace(client->program.id, std::move(client));
}

std::vector<NICStreams::Program> NICStreams::programs() const {
  std::vector<Program> out;
  for (const auto& [id, client] : programs_) out.push_back(client->program);
  return out;
}

// Its open connections end with their sockets.
void NICStreams::detach(Client& client) {
  ++counters_.detached;
  const u64 id = client.program.id;
  std::erase_if(listeners_, [id](const auto& entry) { return entry.second->client == id; });
  programs_.erase(id);
}

// A socket that the program has made blocking makes nothing wait: MSG_DONTWAIT.
void NICStreams::on_client(Client& client, Time now) {
  for (u32 i = 0; i < kRequestsAtOnce; ++i) {
    std::array<u8, sizeof(NICStreamRequest) + 1> message;  // a longer one does not decode
    const ssize_t size = ::recv(client.socket.get(), message.data(), message.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return detach(client);
    const auto request =
        NICStreamRequest::decode(std::span(message).first(static_cast<std::size_t>(size)));
    if (!request) ++counters_.refused_requests;
    if (!request || !answer(client, *request, now)) return detach(client);
  }
}

// Returns false if the program does not take the answer.
bool NICStreams::answer(Client& client, const NICStreamRequest& request, Time now) {
  if (request.call != NICStreamCall::kClose) return open(client, request, now);
  close_listener(client, request.closed);
  return send_nic_message(client.socket.get(), NICStreamAnswer{.number = request.number});
}

void NICStreams::close_listener(const Client& client, u32 number) {
  std::erase_if(listeners_, [&](const auto& entry) {
    return entry.second->client == client.program.id && entry.second->number == number;
  });
}

bool NICStreams::open(Client& client, const NICStreamRequest& request, Time now) {
  NICStreamAnswer answer{.number = request.number, .error = refusal_of(client, request, now)};
  SocketPair pair;
  if (answer.error == 0) {
    pair = open_pair(SOCK_SEQPACKET);
    if (!pair.ours.is_open())
      answer.error = errno;
    else if (request.call == NICStreamCall::kListen)
      answer.error = listen(client, request, std::move(pair.ours));
    else
      answer.error = connect(request, std::move(pair.ours), now);
  }
  if (answer.error != 0) pair.of_program.reset();
  return send_nic_message(client.socket.get(), answer, pair.of_program);
}

// Each has two descriptors at most.
bool NICStreams::refuse_if_full() {
  if (streams() + listeners() < max_streams_) return false;
  ++counters_.refused_beyond_limit;
  return true;
}

// Returns an errno; 0: none. A program asks again for a while after ECONNREFUSED.
i32 NICStreams::refusal_of(const Client& client, const NICStreamRequest& request, Time now) {
  const NICStreamRefusal refusal = filter_.check(request, client.first_port);
  ++counters_.refused[static_cast<std::size_t>(refusal)];
  if (refusal != NICStreamRefusal::kNone) return EACCES;
  if (refuse_if_full()) return ENOBUFS;
  if (request.call == NICStreamCall::kListen) return 0;
  if (!connections_.may_send(now)) {
    ++counters_.refused_connections;
    return ECONNREFUSED;
  }
  connections_.on_sent(1);
  return 0;
}

// --- connections on their way

// Returns an errno; 0: none.
i32 NICStreams::listen(Client& client, const NICStreamRequest& request, Descriptor door) {
  auto made = std::make_unique<Listener>(*this);
  Listener& listener = *made;
  const auto backlog = static_cast<int>(std::min<u32>(request.backlog, kMaxBacklog));
  listener.socket = opener_.listen({request.ends.local, request.ends.local_port}, backlog);
  if (!listener.socket.is_open()) return errno;
  listener.id = ++last_id_;
  listener.client = client.program.id;
  listener.number = request.number;
  listener.door = std::move(door);
  if (!listener.accepts.watch(listener.socket.get(), EPOLLIN) ||
      !listener.ends.watch(listener.door.get(), EPOLLRDHUP))
    return ENOMEM;
  listeners_.emplace(listener.id, std::move(made));
  return 0;
}

void NICStreams::on_listener(Listener& listener, Time now) {
  for (u32 i = 0; i < kAcceptedAtOnce; ++i) {
    std::optional<OpenedStream> opened = opener_.accept(listener.socket.get());
    if (opened) {
      on_accepted(listener, std::move(*opened), now);
      continue;
    }
    if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) return;
    listener.accepts.change(0);
    listener.paused_until = now + kAcceptPause;
    return set_deadline(listener.paused_until);
  }
}

void NICStreams::on_accepted(Listener& listener, OpenedStream opened, Time now) {
  if (refuse_if_full()) return;
  Opening& opening = add_opening(now);
  opening.listener = listener.id;
  opening.peer = opened.ends.remote;
  opening.stream = std::move(opened);
  begin_to_secure(opening, now);
}

NICStreams::Opening& NICStreams::add_opening(Time now) {
  auto made = std::make_unique<Opening>(*this);
  Opening& opening = *made;
  opening.id = ++last_id_;
  opening.deadline = now + kSetUpPatience;
  set_deadline(opening.deadline);
  openings_.emplace(opening.id, std::move(made));
  return opening;
}

// Returns an errno; 0: none.
i32 NICStreams::connect(const NICStreamRequest& request, Descriptor door, Time now) {
  const TCPTuple& ends = request.ends;
  Descriptor connecting =
      opener_.connect({ends.remote, ends.remote_port}, {ends.local, ends.local_port});
  if (!connecting.is_open()) return errno;
  Opening& opening = add_opening(now);
  opening.peer = ends.remote;
  opening.connecting = std::move(connecting);
  opening.door = std::move(door);
  if (opening.ready.watch(opening.connecting.get(), opener_.connecting_events()) &&
      opening.ends.watch(opening.door.get(), EPOLLRDHUP))
    return 0;
  openings_.erase(opening.id);
  return ENOMEM;
}

void NICStreams::on_opening(Opening& opening, Time now) {
  if (opening.socket.is_open()) return secure(opening, now);
  std::optional<OpenedStream> opened = opener_.connected(opening.connecting);
  if (!opened && errno == EAGAIN) return;
  if (!opened) return fail(opening, errno);
  opening.ready.forget();  // the socket is open: `stream` has it
  opening.stream = std::move(*opened);
  begin_to_secure(opening, now);
}

void NICStreams::begin_to_secure(Opening& opening, Time now) {
  opening.socket = std::move(opening.stream.socket);
  if (host_.encryption == nullptr) return hand_over(opening);
  if (!opening.ready.watch(opening.socket.get(), EPOLLIN)) return fail(opening, ENOMEM);
  const TLSRole role = opening.listener == 0 ? TLSRole::kClient : TLSRole::kServer;
  opening.socket.secure(host_.encryption->begin(opening.socket.get(), role, opening.peer));
  secure(opening, now);
}

// The TLS handshake, as far as it goes now.
void NICStreams::secure(Opening& opening, Time) {
  const TLSRole role = opening.listener == 0 ? TLSRole::kClient : TLSRole::kServer;
  switch (opening.socket.tls()->shake_hands()) {
    case TLSStream::Handshake::kGoesOn: return opening.ready.change(opening.socket.tls()->awaits());
    case TLSStream::Handshake::kFailed:
      ++counters_.refused_handshake;
      host_.encryption->note_refused(role, opening.peer, opening.socket.tls()->error());
      return fail(opening, ECONNREFUSED);
    case TLSStream::Handshake::kDone: break;
  }
  host_.encryption->note_agreed(role);
  opening.ready.forget();
  hand_over(opening);
}

// Returns -1 if nobody waits for it any more.
int NICStreams::door_of(const Opening& opening) const {
  if (opening.listener == 0) return opening.door.get();
  const auto found = listeners_.find(opening.listener);
  return found == listeners_.end() ? -1 : found->second->door.get();
}

// A program that does not take its connections loses those that do not fit its socket.
void NICStreams::hand_over(Opening& opening) {
  SocketPair pair = open_pair(SOCK_STREAM);
  if (!pair.ours.is_open()) return fail(opening, errno);
  const NICStreamOpened opened{.segment_bytes = opening.stream.segment_bytes,
                               .ends = opening.stream.ends};
  if (!send_nic_message(door_of(opening), opened, pair.of_program))
    return void(openings_.erase(opening.id));
  const auto opener = opening.listener == 0 ? NICRelay::Opener::kProgram : NICRelay::Opener::kPeer;
  auto made = std::make_unique<Relay>(*this, ++last_id_, std::move(pair.ours),
                                      std::move(opening.socket), opener);
  openings_.erase(opening.id);
  if (!made->program_ready.watch(made->relay.program(), kRelayEvents) ||
      !made->network_ready.watch(made->relay.network(), kRelayEvents))
    return;
  ++counters_.opened;
  relays_.emplace(made->id, std::move(made));
}

void NICStreams::fail(Opening& opening, int error) {
  if (opening.listener == 0)
    (void)send_nic_message(opening.door.get(), NICStreamOpened{.error = error});
  openings_.erase(opening.id);
}

// --- open connections

void NICStreams::on_relay(Relay& relay, Time now) {
  if (relay.relay.is_over()) return close(relay);
  if (relay.relay.is_orphan() && relay.deadline == Time::never()) {
    relay.deadline = now + kOrphanPatience;
    set_deadline(relay.deadline);
  }
  if (relay.relay.can_send() && !std::exchange(relay.waits_to_send, true))
    to_send_.push_back(&relay);
  if (relay.relay.can_receive() && !std::exchange(relay.waits_to_receive, true))
    to_receive_.push_back(&relay);
}

void NICStreams::close(Relay& relay) {
  if (relay.relay.has_sent_no_mpa()) ++counters_.refused_protocol;
  ++counters_.closed;
  if (relay.waits_to_send) std::erase(to_send_, &relay);
  if (relay.waits_to_receive) std::erase(to_receive_, &relay);
  relays_.erase(relay.id);
}

u64 NICStreams::send(u64 bytes, Time now) {
  Relay& relay = *to_send_.front();
  to_send_.pop_front();
  relay.waits_to_send = false;
  const u64 sent = relay.relay.send(std::min<u64>(bytes, NICRelay::kPieceBytes), *host_.piece);
  counters_.sent_bytes += sent;
  on_relay(relay, now);
  return sent;
}

bool NICStreams::receive(Time now) {
  u64 received = 0;
  for (u32 turns = 0; !to_receive_.empty() && turns < kTurnsAtOnce; ++turns) {
    if (received >= kReceivedAtOnce) break;
    Relay& relay = *to_receive_.front();
    to_receive_.pop_front();
    relay.waits_to_receive = false;
    const u64 got = relay.relay.receive(NICRelay::kPieceBytes, *host_.piece);
    counters_.received_bytes += got;
    received += got;
    on_relay(relay, now);
  }
  return received != 0;
}

void NICStreams::run_due_timers(Time now) {
  if (now < next_timer_) return;
  next_timer_ = Time::never();
  for (const auto& [id, listener] : listeners_) {
    if (listener->paused_until <= now) {
      listener->paused_until = Time::never();
      listener->accepts.change(EPOLLIN);
    }
    set_deadline(listener->paused_until);
  }
  std::vector<Opening*> late;
  for (const auto& [id, opening] : openings_)
    opening->deadline <= now ? late.push_back(opening.get()) : set_deadline(opening->deadline);
  for (Opening* const opening : late) fail(*opening, ETIMEDOUT);
  std::vector<Relay*> orphans;
  for (const auto& [id, relay] : relays_) {
    relay->deadline <= now ? orphans.push_back(relay.get()) : set_deadline(relay->deadline);
  }
  for (Relay* const relay : orphans) {
    relay->relay.break_off();
    close(*relay);
  }
}

// --- counters

void NICStreams::for_each_counter(
    const std::function<void(const std::string& name, u64 value)>& visit) const {
  visit("stream_programs_attached", counters_.attached);
  visit("stream_programs_detached", counters_.detached);
  visit("streams_opened", counters_.opened);
  visit("streams_closed", counters_.closed);
  visit("stream_sent_bytes", counters_.sent_bytes);
  visit("stream_received_bytes", counters_.received_bytes);
  visit("streams_refused_rate", counters_.refused_connections);
  visit("streams_refused_limit", counters_.refused_beyond_limit);
  visit("streams_refused_request", counters_.refused_requests);
  visit("streams_refused_protocol", counters_.refused_protocol);
  visit("streams_refused_handshake", counters_.refused_handshake);
  for (std::size_t i = 1; i < kNICStreamRefusals; ++i)
    visit(std::string("streams_") + name_of(static_cast<NICStreamRefusal>(i)),
          counters_.refused[i]);
}

}  // namespace verbena::host
