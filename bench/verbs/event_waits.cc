// Exchanges of small messages on many connections by threads that sleep until something arrives,
// over RC queue pairs or over TCP sockets.
//
// usage: event_waits answer PORT
//        event_waits ask ADDRESS PORT OVER WAITS CONNECTIONS SECONDS
// OVER: verbs, tcp
// WAITS: threads  each connection has a thread, which blocks: in ibv_get_cq_event() on a completion
//                 channel of its own, or in read()
//        epoll    one thread waits for all connections in epoll_wait(): on one completion channel
//        of
//                 all queue pairs, or on all sockets
// Each connection has one message on its way at any time. The asker prints how many thousand went
// there and back in a second.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/limits/process.h"
#include "bench/tcp.h"
#include "bench/verbs/connect.h"

namespace {

constexpr std::uint32_t kLength = 64, kReceives = 4, kSignalEach = 8, kMaxConnections = 1024;
constexpr int kEvents = 64;

enum class Over : std::uint32_t { kVerbs, kTCP };
enum class Waits : std::uint32_t { kThreads, kEpoll };
enum class Role : std::uint32_t { kAsk, kAnswer };

struct Plan {  // of the asker, for both
  Over over = Over::kVerbs;
  Waits waits = Waits::kThreads;
  std::uint32_t connections = 0;
};

std::atomic<std::uint64_t> exchanges = 0;  // of this process

int new_epoll() {
  const int epoll = epoll_create1(0);
  limits::require(epoll >= 0, "epoll_create1");
  return epoll;
}

void watch(int epoll, int descriptor, std::uint32_t index) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = index;
  limits::require(epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl");
}

// --- TCP ---

int make_listener(std::size_t& port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in here = tcp::at("0.0.0.0", 0);
  socklen_t size = sizeof here;
  auto* const address = reinterpret_cast<sockaddr*>(&here);
  limits::require(bind(listener, address, size) == 0, "bind");
  limits::require(listen(listener, kMaxConnections) == 0, "listen");
  limits::require(getsockname(listener, address, &size) == 0, "getsockname");
  port = ntohs(here.sin_port);
  return listener;
}

int without_delay(int socket) {
  const int on = 1;
  limits::require(socket >= 0, "socket");
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

class Sockets {
 public:
  Sockets(Role role, const Plan& plan, int control, const char* address);
  void start(std::uint32_t i) { tcp::send(sockets_[i], message_.data(), kLength); }
  [[noreturn]] void run_one(std::uint32_t i, Role role);
  [[noreturn]] void run_all(Role role);

 private:
  void exchange(std::uint32_t i, Role role);

  std::array<std::uint8_t, kLength> message_{};
  std::vector<int> sockets_;
};

Sockets::Sockets(Role role, const Plan& plan, int control, const char* address) {
  std::size_t port = 0;
  const int listener = role == Role::kAnswer ? make_listener(port) : -1;
  if (role == Role::kAnswer)
    tcp::send(control, &port, sizeof port);
  else
    tcp::receive(control, &port, sizeof port);
  for (std::uint32_t i = 0; i < plan.connections; ++i)
    sockets_.push_back(without_delay(role == Role::kAnswer ? accept(listener, nullptr, nullptr)
                                                           : tcp::connect_to(address, port)));
}

// Waits for a whole message, and sends the next one.
void Sockets::exchange(std::uint32_t i, Role role) {
  std::array<std::uint8_t, kLength> message{};
  tcp::receive(sockets_[i], message.data(), kLength);
  if (role == Role::kAsk) exchanges.fetch_add(1, std::memory_order_relaxed);
  tcp::send(sockets_[i], message.data(), kLength);
}

void Sockets::run_one(std::uint32_t i, Role role) {
  for (;;) exchange(i, role);
}

void Sockets::run_all(Role role) {
  const int epoll = new_epoll();
  for (std::uint32_t i = 0; i < sockets_.size(); ++i) watch(epoll, sockets_[i], i);
  for (;;) {
    std::array<epoll_event, kEvents> events{};
    const int count = epoll_wait(epoll, events.data(), kEvents, -1);
    for (int i = 0; i < count; ++i) exchange(events[static_cast<std::size_t>(i)].data.u32, role);
  }
}

// --- verbs ---

// A completion channel, its CQ, and the queue pairs that complete there.
class Channel {
 public:
  Channel(ibv_context* context, ibv_pd* pd, std::uint32_t qps);
  [[nodiscard]] std::uint32_t qp_number(std::uint32_t i) const { return qps_[i]->qp_num; }
  void connect_to(std::uint32_t i, std::uint32_t qpn, const ibv_gid& gid,
                  const verbs::Address& own);
  void send(std::uint32_t i);
  [[noreturn]] void run(Waits waits, Role role);

 private:
  void post_receive(std::uint32_t i);
  void take_event();
  void take_completions(Role role);

  std::array<std::uint8_t, kLength> message_{};
  ibv_mr* memory_;
  ibv_comp_channel* channel_;
  ibv_cq* cq_;
  std::vector<ibv_qp*> qps_;
  std::vector<std::uint32_t> sent_;  // by each
};

Channel::Channel(ibv_context* context, ibv_pd* pd, std::uint32_t qps) : sent_(qps) {
  memory_ = ibv_reg_mr(pd, message_.data(), kLength, IBV_ACCESS_LOCAL_WRITE);
  channel_ = ibv_create_comp_channel(context);
  limits::require(memory_ != nullptr && channel_ != nullptr, "resources");
  cq_ = ibv_create_cq(context, static_cast<int>(qps * 4 * kReceives), nullptr, channel_, 0);
  limits::require(cq_ != nullptr && ibv_req_notify_cq(cq_, 0) == 0, "ibv_create_cq");
  for (std::uint32_t i = 0; i < qps; ++i) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_;
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = 2 * kSignalEach,
                .max_recv_wr = kReceives,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    qps_.push_back(ibv_create_qp(pd, &init));
    limits::require(qps_.back() != nullptr, "ibv_create_qp");
  }
}

void Channel::connect_to(std::uint32_t i, std::uint32_t qpn, const ibv_gid& gid,
                         const verbs::Address& own) {
  verbs::connect(qps_[i], verbs::way_to(gid, own), qpn, IBV_MTU_1024, IBV_ACCESS_LOCAL_WRITE);
  for (std::uint32_t n = 0; n < kReceives; ++n) post_receive(i);
}

void Channel::post_receive(std::uint32_t i) {
  ibv_sge sge{reinterpret_cast<std::uint64_t>(message_.data()), kLength, memory_->lkey};
  ibv_recv_wr request{}, *bad = nullptr;
  request.wr_id = i;
  request.sg_list = &sge;
  request.num_sge = 1;
  limits::require(ibv_post_recv(qps_[i], &request, &bad) == 0, "ibv_post_recv");
}

void Channel::send(std::uint32_t i) {
  ibv_sge sge{reinterpret_cast<std::uint64_t>(message_.data()), kLength, memory_->lkey};
  ibv_send_wr request{}, *bad = nullptr;
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  const bool is_signaled = ++sent_[i] % kSignalEach == 0;
  request.send_flags = is_signaled ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0;
  limits::require(ibv_post_send(qps_[i], &request, &bad) == 0, "ibv_post_send");
}

// Asks for the next event before it looks, so that none is missed.
void Channel::take_event() {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  limits::require(ibv_get_cq_event(channel_, &cq, &context) == 0, "ibv_get_cq_event");
  ibv_ack_cq_events(cq, 1);
  limits::require(ibv_req_notify_cq(cq_, 0) == 0, "ibv_req_notify_cq");
}

void Channel::take_completions(Role role) {
  std::array<ibv_wc, 16> completions{};
  for (;;) {
    const int count = ibv_poll_cq(cq_, static_cast<int>(completions.size()), completions.data());
    if (count == 0) return;
    for (int n = 0; n < count; ++n) {
      const ibv_wc& wc = completions[static_cast<std::size_t>(n)];
      if (wc.status != IBV_WC_SUCCESS) limits::fail(ibv_wc_status_str(wc.status));
      if (wc.opcode != IBV_WC_RECV) continue;
      const auto i = static_cast<std::uint32_t>(wc.wr_id);
      post_receive(i);
      if (role == Role::kAsk) exchanges.fetch_add(1, std::memory_order_relaxed);
      send(i);
    }
  }
}

void Channel::run(Waits waits, Role role) {
  const int epoll = new_epoll();
  watch(epoll, channel_->fd, 0);
  for (;;) {
    epoll_event event{};
    if (waits == Waits::kEpoll && epoll_wait(epoll, &event, 1, -1) != 1) continue;
    take_event();
    take_completions(role);
  }
}

struct Target {  // what a side tells the other of one queue pair
  ibv_gid gid{};
  std::uint32_t qpn = 0;
};

// As many channels as threads.
class Queues {
 public:
  Queues(const Plan& plan, int control);
  void start(std::uint32_t i) { channel_of(i).send(place_of(i)); }
  [[noreturn]] void run_one(std::uint32_t i, Role role) {
    channels_[i]->run(Waits::kThreads, role);
  }
  [[noreturn]] void run_all(Role role) { channels_[0]->run(Waits::kEpoll, role); }

 private:
  Channel& channel_of(std::uint32_t i) { return *channels_[channels_.size() == 1 ? 0 : i]; }
  [[nodiscard]] std::uint32_t place_of(std::uint32_t i) const {
    return channels_.size() == 1 ? i : 0;
  }

  std::vector<std::unique_ptr<Channel>> channels_;
};

Queues::Queues(const Plan& plan, int control) {
  ibv_context* const context = verbs::open_first_device();
  const verbs::Address own = verbs::address_of(context);
  ibv_pd* const pd = ibv_alloc_pd(context);
  const bool is_shared = plan.waits == Waits::kEpoll;
  for (std::uint32_t i = 0; i < (is_shared ? 1 : plan.connections); ++i)
    channels_.push_back(std::make_unique<Channel>(context, pd, is_shared ? plan.connections : 1));
  for (std::uint32_t i = 0; i < plan.connections; ++i) {
    const Target ours{.gid = own.gid, .qpn = channel_of(i).qp_number(place_of(i))};
    Target peer;
    tcp::send(control, &ours, sizeof ours);
    tcp::receive(control, &peer, sizeof peer);
    channel_of(i).connect_to(place_of(i), peer.qpn, peer.gid, own);
  }
}

// --- both ---

// Runs the connections in threads that end with the process.
template <typename Connections>
void begin(Connections& connections, const Plan& plan, Role role, int control) {
  std::uint8_t ready = 1;
  tcp::send(control, &ready, sizeof ready);
  tcp::receive(control, &ready, sizeof ready);
  if (plan.waits == Waits::kEpoll)
    std::thread([&connections, role] { connections.run_all(role); }).detach();
  else
    for (std::uint32_t i = 0; i < plan.connections; ++i)
      std::thread([&connections, i, role] { connections.run_one(i, role); }).detach();
  for (std::uint32_t i = 0; role == Role::kAsk && i < plan.connections; ++i) connections.start(i);
}

// Returns when there is no more to do. Both objects stay until the process ends, as its threads do.
template <typename Wait>
void run(const Plan& plan, Role role, int control, const char* address, const Wait& wait) {
  if (plan.over == Over::kTCP) {
    auto* const sockets = new Sockets(role, plan, control, address);
    begin(*sockets, plan, role, control);
  } else {
    auto* const queues = new Queues(plan, control);
    begin(*queues, plan, role, control);
  }
  wait();
}

[[noreturn]] void answer(std::size_t port) {
  const int control = tcp::accept_one(port);
  Plan plan;
  tcp::receive(control, &plan, sizeof plan);
  run(plan, Role::kAnswer, control, nullptr, [control] {
    std::uint8_t end = 0;
    tcp::receive(control, &end, sizeof end);
  });
  std::_Exit(0);
}

[[noreturn]] void ask(const char* address, std::size_t port, const Plan& plan, long seconds) {
  const int control = tcp::connect_to(address, port);
  tcp::send(control, &plan, sizeof plan);
  run(plan, Role::kAsk, control, address, [&] {
    const double from = limits::now_s();
    const timespec time{.tv_sec = seconds, .tv_nsec = 0};
    nanosleep(&time, nullptr);
    const auto count = static_cast<double>(exchanges.load());
    std::printf("%.2f\n", count / (limits::now_s() - from) / 1e3);
  });
  std::fflush(stdout);
  const std::uint8_t end = 1;
  tcp::send(control, &end, sizeof end);
  std::_Exit(0);
}

bool parse(char** argv, Plan& plan) {
  const std::string_view over = argv[4], waits = argv[5];
  plan.over = over == "tcp" ? Over::kTCP : Over::kVerbs;
  plan.waits = waits == "epoll" ? Waits::kEpoll : Waits::kThreads;
  plan.connections = static_cast<std::uint32_t>(limits::number(argv[6]));
  return (over == "tcp" || over == "verbs") && (waits == "epoll" || waits == "threads") &&
         plan.connections != 0 && plan.connections <= kMaxConnections;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "answer") == 0) answer(limits::number(argv[2]));
  Plan plan;
  if (argc == 8 && std::strcmp(argv[1], "ask") == 0 && parse(argv, plan))
    ask(argv[2], limits::number(argv[3]), plan, static_cast<long>(limits::number(argv[7])));
  std::fprintf(stderr,
               "usage: event_waits answer PORT\n"
               "       event_waits ask ADDRESS PORT verbs|tcp threads|epoll CONNECTIONS SECONDS\n");
  return 2;
}
