#include "host/nic/nic_server.h"

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>

#include "host/nic/nic_stream_limits.h"
#include "host/os/clock.h"
#include "host/os/time_slice.h"

namespace verbena::host {
namespace {

constexpr int kBacklogOfNIC = 64;
constexpr Duration kControlInterval = ms(1);  // between looks at control sockets while it polls
constexpr i64 kLongestSleepMs = 100;
constexpr u32 kRequestsAtOnce = 16;          // of a program that are answered together
constexpr u32 kOfLink = 0, kOfDoorbell = 1;  // events of the poll

NICAttached nic_refusal(int error, const std::string& why) {
  NICAttached answer{.error = error};
  put_text(answer.text, why);
  return answer;
}

NICAttached no_function_for(const NICAttach& request) {
  const std::string wanted = text_of(request.function);
  return nic_refusal(EACCES,
                     "no function" + (wanted.empty() ? "" : " " + wanted) + " admits this user");
}

// connect() refuses a file of another kind by the same errno as a socket that nobody listens at.
bool is_socket_file(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
}

// A function of a configuration, and its addresses.
struct FunctionPlace {
  const NICFunctionConfig* config;
  std::vector<GID> addresses;
};

// Refuses an address of two functions with different tenants, as each could send in the other's
// name.
Expected<void> check_tenants(const std::vector<FunctionPlace>& places) {
  std::map<std::array<u8, 16>, const NICFunctionConfig*> owners;
  for (const auto& [config, addresses] : places)
    for (const GID& address : addresses) {
      const NICFunctionConfig& owner = *owners.emplace(address.bytes, config).first->second;
      if (owner.has_tenants_of(*config)) continue;
      return failure(EINVAL, "functions " + owner.name + " and " + config->name +
                                 " have the address " + address.to_string() +
                                 " and different users or groups: each could send in the other's "
                                 "name");
    }
  return {};
}

void add_if_on_xdp(const NICFunction& function, std::vector<LocalAddress>& out) {
  if (function.config().link == LinkKind::kXDP) out.push_back(function.local_address());
}

bool is_readable(int fd) {
  pollfd asked{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&asked, 1, 0) > 0;
}

bool is_closed(int fd) {
  pollfd asked{.fd = fd, .events = POLLRDHUP, .revents = 0};
  return ::poll(&asked, 1, 0) > 0;
}

}  // namespace

Expected<std::unique_ptr<NICServer>> NICServer::open(const NICConfig& config) {
  std::unique_ptr<NICServer> server(new NICServer(config));
  server->poll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (Expected<void> opened = server->open_streams(); !opened)
    return tl::unexpected(opened.error());
  for (const NICFunctionConfig& wanted : config.functions) {
    Expected<NICFunction> function = NICFunction::open(wanted, server->streams_);
    if (!function) return tl::unexpected(function.error());
    server->functions_.push_back(std::move(*function));
  }
  std::vector<FunctionPlace> places;
  for (const NICFunction& function : server->functions_)
    places.push_back({&function.config(), function.addresses()});
  if (Expected<void> checked = check_tenants(places); !checked)
    return tl::unexpected(checked.error());
  const Expected<u32> share = share_of_streams(config, raise_descriptor_limit());
  if (!share) return tl::unexpected(share.error());
  for (NICFunction& function : server->functions_) function.limit_streams(*share);
  std::vector<LocalAddress> on_xdp;
  for (const NICFunction& function : server->functions_) add_if_on_xdp(function, on_xdp);
  if (Expected<void> opened = server->open_ports(on_xdp); !opened)
    return tl::unexpected(opened.error());
  server->hand_out_ports();
  if (Expected<void> listens = server->listen(); !listens) return tl::unexpected(listens.error());
  return server;
}

NICServer::~NICServer() {
  if (listener_.is_open()) ::unlink(config_.socket.c_str());
}

// Every process may connect: a function admits it by its credentials. A stale socket of an ended
// NIC is replaced; a socket in use is not.
Expected<void> NICServer::listen() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (config_.socket.empty() || config_.socket.size() >= sizeof(address.sun_path))
    return failure(EINVAL, "socket: a path of 1 to 107 bytes is needed");
  config_.socket.copy(address.sun_path, config_.socket.size());
  const auto* const name = reinterpret_cast<const sockaddr*>(&address);
  const Descriptor probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (::connect(probe.get(), name, sizeof(address)) == 0)
    return failure(EADDRINUSE, "another verbena nic listens at " + config_.socket);
  if (errno == ECONNREFUSED && is_socket_file(config_.socket)) ::unlink(config_.socket.c_str());
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open() || ::bind(socket.get(), name, sizeof(address)) != 0 ||
      ::chmod(config_.socket.c_str(), 0666) != 0 || ::listen(socket.get(), kBacklogOfNIC) != 0)
    return failure(errno, "cannot listen at " + config_.socket + ": " + std::strerror(errno));
  listener_ = std::move(socket);
  watch_descriptor(listener_.get());
  return {};
}

// An event of a stream wakes the NIC, and has it look at no link. With encryption whose files are
// missing no program could attach: that is an error here.
Expected<void> NICServer::open_streams() {
  Expected<TCPPoll> opened = TCPPoll::open();
  if (!opened) return tl::unexpected(opened.error());
  streams_.poll = std::move(*opened);
  epoll_event event{.events = EPOLLIN, .data = {.u32 = kOfDoorbell}};
  (void)::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, streams_.poll.fd(), &event);
  if (!config_.encryption) return {};
  Expected<std::unique_ptr<StreamEncryption>> tls = StreamEncryption::open(*config_.encryption);
  if (!tls) return tl::unexpected(tls.error());
  streams_.encryption = std::move(*tls);
  return {};
}

void NICServer::watch_descriptor(int fd) {
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u32 = kOfLink}};
  (void)::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event);
}

// The doorbell is never read.
void NICServer::watch_program(const NICFunction::Program& program) {
  epoll_event rung{.events = EPOLLIN | EPOLLET, .data = {.u32 = kOfDoorbell}};
  (void)::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, program.doorbell_of_nic.get(), &rung);
  for (const int fd : program.link->descriptors()) watch_descriptor(fd);
}

// The program may keep its descriptor of the doorbell, with which the epoll would keep it.
void NICServer::detach(NICFunction& function, const NICFunction::Program& program) {
  (void)::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, program.doorbell_of_nic.get(), nullptr);
  function.detach(program);
}

// --- control

// When too many clients connect and ask nothing, the oldest is closed, so that they block nobody.
void NICServer::accept_controls() {
  for (u32 i = 0; i < kMaxControls; ++i) {
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) return;
    watch_descriptor(socket.get());
    if (controls_.size() == kMaxControls) controls_.erase(controls_.begin());
    controls_.push_back(std::move(socket));
  }
}

void NICServer::serve_controls(Time now) {
  accept_controls();
  std::vector<Descriptor> left;
  for (Descriptor& control : std::exchange(controls_, {}))
    if (!is_readable(control.get()) || !answer_control(control)) {
      if (control.is_open() && !is_closed(control.get())) left.push_back(std::move(control));
    }
  for (Descriptor& control : left) controls_.push_back(std::move(control));
  serve_programs();
  for (NICFunction& function : functions_) function.streams().run_due_timers(now);
}

// Returns true if the client was answered, and the socket is closed or belongs to a program now.
bool NICServer::answer_control(Descriptor& socket) {
  NICAttach request{};
  const ssize_t size = ::recv(socket.get(), &request, sizeof(request), MSG_DONTWAIT);
  ucred who{};
  socklen_t who_size = sizeof(who);
  if (size != sizeof(request) || request.version != kNICVersion ||
      ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &who_size) != 0) {
    socket.reset();
    return true;
  }
  switch (request.request) {
    case NICRequest::kStatus:
      answer_status(socket);
      socket.reset();
      return true;
    case NICRequest::kDescribe: {
      const NICFunction* const function = function_for(request, who);
      answer_with(socket, function == nullptr
                              ? no_function_for(request)
                              : function->description_of(nullptr, config_.encryption));
      socket.reset();
      return true;
    }
    case NICRequest::kAttach: attach(std::move(socket), request, who); return true;
    case NICRequest::kAttachStreams: attach_streams(std::move(socket), request, who); return true;
    case NICRequest::kJoin:
    case NICRequest::kLeave: break;
  }
  socket.reset();
  return true;
}

void NICServer::answer_with(const Descriptor& socket, const NICAttached& answer) {
  (void)send_with_descriptors(socket.get(), {reinterpret_cast<const u8*>(&answer), sizeof(answer)},
                              {});
}

void NICServer::answer_status(const Descriptor& socket) const {
  const std::string status = text();
  const Descriptor memory = sealed_text(status);
  const NICStatusAnswer answer{.error = memory.is_open() ? 0 : errno, .text_bytes = status.size()};
  const std::array<int, 1> descriptors{memory.get()};
  (void)send_with_descriptors(socket.get(), {reinterpret_cast<const u8*>(&answer), sizeof(answer)},
                              std::span<const int>(descriptors).first(memory.is_open() ? 1 : 0));
}

NICFunction* NICServer::function_for(const NICAttach& request, const ucred& who) {
  const std::string wanted = text_of(request.function);
  NICFunction* chosen = nullptr;  // one that has room, and of those the one with fewest programs
  const auto load = [](NICFunction& f) { return std::pair(f.is_full(), f.program_count()); };
  for (NICFunction& function : functions_) {
    if (!function.admits(who.uid, who.gid)) continue;
    if (!wanted.empty() && !function.is_called(wanted)) continue;
    if (chosen == nullptr || load(function) < load(*chosen)) chosen = &function;
  }
  return chosen;
}

void NICServer::attach(Descriptor socket, const NICAttach& request, const ucred& who) {
  NICFunction* const function = function_for(request, who);
  if (function == nullptr) return answer_with(socket, no_function_for(request));
  const int control = socket.get();
  Expected<NICFunction::Program*> program =
      function->attach(socket, who, request.wanted_slot, config_.encryption);
  if (!program)
    return answer_with(socket, nic_refusal(program.error().error, program.error().message));
  const NICAttached answer = function->description_of(*program, config_.encryption);
  const std::array<int, 3> descriptors{(*program)->memory.get(), (*program)->doorbell_of_nic.get(),
                                       (*program)->heard_by_program.get()};
  if (!send_with_descriptors(control, {reinterpret_cast<const u8*>(&answer), sizeof(answer)},
                             descriptors))
    return function->detach(**program);
  watch_program(**program);
}

// The socket becomes one of the function's streams.
void NICServer::attach_streams(Descriptor socket, const NICAttach& request, const ucred& who) {
  NICFunction* const function = function_for(request, who);
  if (function == nullptr) return answer_with(socket, no_function_for(request));
  const Expected<void> admitted = function->admit_streams();
  if (!admitted)
    return answer_with(socket, nic_refusal(admitted.error().error, admitted.error().message));
  answer_with(socket, function->description_of(nullptr, config_.encryption));
  (void)::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, socket.get(), nullptr);
  function->streams().attach(std::move(socket), who);
}

// A message of another kind is ignored.
void NICServer::answer_program(NICFunction& function, NICFunction::Program& program) {
  NICGroupRequest request;
  for (u32 i = 0; i < kRequestsAtOnce; ++i) {
    const ssize_t size =
        ::recv(program.socket.get(), &request, sizeof(request), MSG_DONTWAIT | MSG_TRUNC);
    if (size <= 0) return;
    if (size != sizeof(request) || request.version != kNICVersion) continue;
    if (request.request == NICRequest::kLeave) function.leave(program, request.group);
    if (request.request != NICRequest::kJoin) continue;
    const Expected<void> joined = function.join(program, request.group);
    NICGroupAnswer answer{.error = joined ? 0 : joined.error().error, .group = request.group};
    if (!joined) put_text(answer.text, joined.error().message);
    (void)send_with_descriptors(program.socket.get(),
                                {reinterpret_cast<const u8*>(&answer), sizeof(answer)}, {});
  }
}

void NICServer::serve_programs() {
  for (NICFunction& function : functions_)
    for (std::size_t i = 0; i < function.programs().size();) {
      NICFunction::Program& program = *function.programs()[i];
      if (is_readable(program.socket.get())) answer_program(function, program);
      if (program.from_program->is_broken()) function.note_broken_ring();
      if (is_closed(program.socket.get()) || program.from_program->is_broken())
        detach(function, program);
      else
        ++i;
    }
}

NICFunction* NICServer::function_at(u16 vlan, const GID& address) {
  const auto found = std::ranges::find_if(functions_, [&](const NICFunction& function) {
    return function.config().vlan == vlan && function.has_address(address);
  });
  return found == functions_.end() ? nullptr : &*found;
}

Expected<void> NICServer::reconfigure(const NICConfig& config) {
  if (config.socket != config_.socket) return failure(EINVAL, "socket: it stays as it is");
  if (config.encryption != config_.encryption)
    return failure(EINVAL, "encryption: it stays as it is");
  std::vector<NICFunction> functions;
  std::vector<FunctionPlace> places;
  std::vector<LocalAddress> on_xdp;
  for (const NICFunctionConfig& wanted : config.functions) {
    const auto same = std::ranges::find_if(
        functions_, [&](const NICFunction& f) { return f.config().is_same_function(wanted); });
    if (same != functions_.end()) {
      places.push_back({&wanted, same->addresses()});
      add_if_on_xdp(*same, on_xdp);
      continue;
    }
    Expected<NICFunction> opened = NICFunction::open(wanted, streams_);
    if (!opened) return tl::unexpected(opened.error());
    places.push_back({&wanted, opened->addresses()});
    add_if_on_xdp(*opened, on_xdp);
    functions.push_back(std::move(*opened));
  }
  if (Expected<void> checked = check_tenants(places); !checked) return checked;
  const Expected<u32> share = share_of_streams(config, raise_descriptor_limit());
  if (!share) return tl::unexpected(share.error());
  if (Expected<void> opened = open_ports(on_xdp); !opened) return opened;
  for (NICFunction& function : functions_) {
    const auto wanted =
        std::ranges::find_if(config.functions, [&](const NICFunctionConfig& candidate) {
          return function.config().is_same_function(candidate);
        });
    if (wanted == config.functions.end()) {
      while (!function.programs().empty()) detach(function, *function.programs().front());
      continue;
    }
    function.reconfigure(*wanted);
    functions.push_back(std::move(function));
  }
  functions_ = std::move(functions);
  for (NICFunction& function : functions_) function.limit_streams(*share);
  hand_out_ports();
  config_ = config;
  scheduler_ = NICScheduler<NICFunction>(config.rate_bps);
  return {};
}

// --- ports

Expected<void> NICServer::open_ports(const std::vector<LocalAddress>& users) {
  std::map<u32, std::vector<GID>> wanted;  // by interface
  for (const LocalAddress& user : users)
    std::ranges::copy(user.all(), std::back_inserter(wanted[user.interface_index]));
  for (const LocalAddress& user : users) {
    const std::vector<GID>& addresses = wanted[user.interface_index];
    if (SharedPort* const port = port_on(user.interface_index)) {
      if (Expected<void> done = port->retake(addresses); !done) return done;
      continue;
    }
    Expected<std::unique_ptr<SharedPort>> opened = SharedPort::open(user, addresses);
    if (!opened) return tl::unexpected(opened.error());
    for (const int fd : (*opened)->port().descriptors()) watch_descriptor(fd);
    ports_.push_back(std::move(*opened));
  }
  return {};
}

SharedPort* NICServer::port_on(u32 interface_index) {
  const auto found = std::ranges::find_if(ports_, [interface_index](const auto& port) {
    return port->interface_index() == interface_index;
  });
  return found == ports_.end() ? nullptr : found->get();
}

void NICServer::hand_out_ports() {
  for (NICFunction& function : functions_)
    if (function.config().link == LinkKind::kXDP)
      function.use(port_on(function.local_address().interface_index));
  std::erase_if(ports_, [this](const auto& port) {
    return std::ranges::find(functions_, port.get(), &NICFunction::shared_port) == functions_.end();
  });
}

// --- packets

void NICServer::run(int stop, const std::function<void()>& between) {
  Time busy_until, next_control;
  bool is_called = false;
  set_time_slice(kShortTimeSlice);
  watch_descriptor(stop);
  for (;;) {
    const Time now = monotonic_now();
    const bool sent = transmit(now);
    const bool received =
        receive(Look::kLikely, now) || (is_called && receive(Look::kEverywhere, now));
    is_called = false;
    if (sent || received)
      busy_until = now + kSpin;
    else if (!contention_.is_core_wanted(now))
      offer_core(now);
    else
      busy_until = now;
    if (now >= next_control) {
      serve_controls(now);
      between();
      if (is_readable(stop)) return;
      next_control = now + kControlInterval;
    }
    if (now >= busy_until) is_called = sleep(now);
  }
}

// 0.3 us where no program wants this core.
void NICServer::offer_core(Time now) {
  ::sched_yield();
  contention_.on_core_returned(now, monotonic_now());
}

bool NICServer::receive(Look look, Time now) {
  bool any = serve_streams(now);
  for (NICFunction& function : functions_) any = function.receive(look, now) || any;
  for (const auto& port : ports_) any = receive_of(*port, now) || any;
  return any;
}

bool NICServer::serve_streams(Time now) {
  const bool any = std::ranges::any_of(
      functions_, [](NICFunction& function) { return function.streams().is_in_use(); });
  return any && streams_.poll.serve(now) != 0;
}

// Frames in a row for one program are published together.
bool NICServer::receive_of(SharedPort& port, Time now) {
  if (!port.port().receive()) return false;
  NICFunction::Program* last = nullptr;
  for (IngressFrame frame; port.port().poll_frame(frame);) {
    const auto owner = std::ranges::find_if(functions_, [&](const NICFunction& function) {
      return function.shared_port() == &port && function.has_address(frame.destination);
    });
    if (owner == functions_.end()) continue;  // of a function that SIGHUP has just removed
    NICFunction::Program* const program = owner->take(frame, now);
    if (last != nullptr && last != program) NICFunction::publish(*last);
    last = program;
  }
  if (last != nullptr) NICFunction::publish(*last);
  return true;
}

bool NICServer::transmit(Time now) {
  return scheduler_.serve(functions_, now, [&](NICFunction& function, u64 bytes) {
    const u64 sent = function.send(bytes, now, *this);
    function.flush();
    return sent;
  });
}

Time NICServer::next_due(Time now) {
  Time due = Time::never();
  for (NICFunction& function : functions_)
    due = std::min(due, function.next_due(now, scheduler_.rate()));
  return due;
}

// Programs ring from here on, until it polls again. Returns true if a link has something.
bool NICServer::sleep(Time now) {
  for (NICFunction& function : functions_) function.unwatch();
  const bool waits_for_rate = std::ranges::any_of(functions_, [](auto& f) { return f.has_more(); });
  const Time due = waits_for_rate ? std::max(next_due(now), now) : Time::never();
  const i64 wait_ms = due == Time::never() ? kLongestSleepMs : (due - now).ns() / 1'000'000;
  const bool is_called =
      due > now && wait_for_events(static_cast<int>(std::min(wait_ms, kLongestSleepMs)));
  for (NICFunction& function : functions_) function.watch();
  return is_called;
}

// Returns true if anything else than doorbells is ready.
bool NICServer::wait_for_events(int wait_ms) {
  std::array<epoll_event, 64> events;
  const int ready =
      ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), wait_ms);
  return std::ranges::any_of(std::span(events).first(static_cast<std::size_t>(std::max(ready, 0))),
                             [](const epoll_event& event) { return event.data.u32 == kOfLink; });
}

std::string NICServer::text() const {
  std::string out = "{\"socket\": \"" + config_.socket +
                    "\", \"encryption\": " + (config_.encryption ? "true" : "false") +
                    ", \"functions\": [";
  for (const NICFunction& function : functions_)
    out += (&function == &functions_.front() ? "\n  " : ",\n  ") + function.text();
  return out + "\n]}\n";
}

}  // namespace verbena::host
