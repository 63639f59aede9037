// How soon a thread that sleeps in ibv_get_cq_event() is awake after a request of each kind was
// posted. Both threads sleep between requests, so that no core is busy when one is posted.
//
// usage: event_latency answer PORT
//        event_latency ask ADDRESS PORT KIND COUNT
// KIND: send, write-imm      the answerer sleeps: one way. Both ends read CLOCK_MONOTONIC of one
//                            machine; the time of posting travels as the payload.
//       write, read, atomic  the asker sleeps: there and back.
// The asker prints a line "p50 p99" in us, then a histogram with buckets of powers of two.
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "bench/limits/process.h"
#include "bench/pauses.h"
#include "bench/tcp.h"
#include "bench/verbs/connect.h"

namespace {

constexpr std::uint32_t kReceives = 64, kLength = sizeof(double);
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC;

struct Kind {
  std::string_view name;
  ibv_wr_opcode opcode;
  bool peer_sleeps;  // else the asker
};

constexpr std::array kKinds = {
    Kind{"send", IBV_WR_SEND, true},
    Kind{"write-imm", IBV_WR_RDMA_WRITE_WITH_IMM, true},
    Kind{"write", IBV_WR_RDMA_WRITE, false},
    Kind{"read", IBV_WR_RDMA_READ, false},
    Kind{"atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, false},
};

const Kind* kind_of(std::string_view name) {
  const auto* const found = std::ranges::find(kKinds, name, &Kind::name);
  return found == kKinds.end() ? nullptr : found;
}

struct Plan {  // of the asker, for both
  std::uint32_t kind = 0, count = 0;
};

struct Target {  // what a side tells the other of itself
  ibv_gid gid{};
  std::uint32_t qp = 0, r_key = 0;
  std::uint64_t address = 0;
};

// One side: a QP, one CQ with its completion channel, and room for the time of posting.
class Side {
 public:
  Side();
  [[nodiscard]] Target target() const;
  void connect_to(const Target& peer);
  void post_receive();
  void post(ibv_wr_opcode opcode, const Target& peer, bool is_signaled);
  void arm() { limits::require(ibv_req_notify_cq(cq_, 0) == 0, "ibv_req_notify_cq"); }
  // Sleeps until the event for which arm() asked, and takes one completion.
  double await_event();
  double& stamp() { return *stamp_; }

 private:
  alignas(64) static inline std::array<std::uint8_t, 4096> buffer_;
  double* stamp_ = reinterpret_cast<double*>(buffer_.data());
  ibv_context* context_ = nullptr;
  verbs::Address address_;
  ibv_pd* pd_ = nullptr;
  ibv_mr* memory_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
};

Side::Side() {
  context_ = verbs::open_first_device();
  address_ = verbs::address_of(context_);
  pd_ = ibv_alloc_pd(context_);
  memory_ = ibv_reg_mr(pd_, buffer_.data(), buffer_.size(), kAccess);
  channel_ = ibv_create_comp_channel(context_);
  cq_ = ibv_create_cq(context_, 2 * kReceives, nullptr, channel_, 0);
  limits::require(memory_ != nullptr && channel_ != nullptr && cq_ != nullptr, "resources");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = IBV_QPT_RC;
  init.cap = {.max_send_wr = kReceives,
              .max_recv_wr = kReceives,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  qp_ = ibv_create_qp(pd_, &init);
  limits::require(qp_ != nullptr, "ibv_create_qp");
}

Target Side::target() const {
  return {.gid = address_.gid,
          .qp = qp_->qp_num,
          .r_key = memory_->rkey,
          .address = reinterpret_cast<std::uint64_t>(stamp_)};
}

void Side::connect_to(const Target& peer) {
  verbs::connect(qp_, verbs::way_to(peer.gid, address_), peer.qp, IBV_MTU_1024, kAccess);
  for (std::uint32_t i = 0; i < kReceives / 2; ++i) post_receive();
}

void Side::post_receive() {
  ibv_sge sge{reinterpret_cast<std::uint64_t>(stamp_), kLength, memory_->lkey};
  ibv_recv_wr request{}, *bad = nullptr;
  request.sg_list = &sge;
  request.num_sge = 1;
  limits::require(ibv_post_recv(qp_, &request, &bad) == 0, "ibv_post_recv");
}

void Side::post(ibv_wr_opcode opcode, const Target& peer, bool is_signaled) {
  ibv_sge sge{reinterpret_cast<std::uint64_t>(stamp_), kLength, memory_->lkey};
  ibv_send_wr request{}, *bad = nullptr;
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = is_signaled ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0;
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
    request.wr.atomic = {
        .remote_addr = peer.address, .compare_add = 1, .swap = 0, .rkey = peer.r_key};
  else
    request.wr.rdma = {.remote_addr = peer.address, .rkey = peer.r_key};
  limits::require(ibv_post_send(qp_, &request, &bad) == 0, "ibv_post_send");
}

double Side::await_event() {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  limits::require(ibv_get_cq_event(channel_, &cq, &context) == 0, "ibv_get_cq_event");
  const double now = limits::now_s();
  ibv_ack_cq_events(cq, 1);
  ibv_wc wc{};
  limits::require(ibv_poll_cq(cq_, 1, &wc) == 1, "an event without a completion");
  if (wc.status != IBV_WC_SUCCESS) limits::fail(ibv_wc_status_str(wc.status));
  return now;
}

Target meet(int socket, Side& side) {
  const Target ours = side.target();
  Target peer;
  tcp::send(socket, &ours, sizeof ours);
  tcp::receive(socket, &peer, sizeof peer);
  side.connect_to(peer);
  std::uint8_t ready = 1;
  tcp::send(socket, &ready, sizeof ready);
  tcp::receive(socket, &ready, sizeof ready);
  return peer;
}

int answer(std::size_t port) {
  const int socket = tcp::accept_one(port);
  Plan plan;
  tcp::receive(socket, &plan, sizeof plan);
  Side side;
  side.arm();
  meet(socket, side);
  if (kKinds[plan.kind].peer_sleeps) {
    std::vector<double> seconds;
    for (std::uint32_t i = 0; i < plan.count; ++i) {
      const double awake = side.await_event();
      seconds.push_back(awake - side.stamp());
      side.post_receive();
      side.arm();
    }
    tcp::send(socket, seconds.data(), seconds.size() * sizeof seconds[0]);
  }
  std::uint8_t end = 0;
  tcp::receive(socket, &end, sizeof end);
  return 0;
}

// The posts are unsignaled when the peer sleeps, but for one of so many that the queue is emptied.
std::vector<double> ask(int socket, Side& side, const Target& peer, const Plan& plan) {
  const Kind& kind = kKinds[plan.kind];
  std::vector<double> seconds(plan.count);
  side.arm();
  for (std::uint32_t i = 0; i < plan.count; ++i) {
    pauses::sleep_between();
    const bool is_signaled = !kind.peer_sleeps || i % (kReceives / 4) == 0;
    const double posted = limits::now_s();
    if (kind.opcode != IBV_WR_RDMA_READ) side.stamp() = posted;
    side.post(kind.opcode, peer, is_signaled);
    if (!is_signaled) continue;
    seconds[i] = side.await_event() - posted;
    side.arm();
  }
  if (kind.peer_sleeps) tcp::receive(socket, seconds.data(), seconds.size() * sizeof seconds[0]);
  const std::uint8_t end = 1;
  tcp::send(socket, &end, sizeof end);
  return seconds;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "answer") == 0) return answer(limits::number(argv[2]));
  const Kind* const kind =
      argc == 6 && std::strcmp(argv[1], "ask") == 0 ? kind_of(argv[4]) : nullptr;
  if (kind == nullptr || limits::number(argv[5]) == 0) {
    std::fprintf(stderr,
                 "usage: event_latency answer PORT | ask ADDRESS PORT KIND COUNT\n"
                 "KIND: send, write-imm, write, read, atomic\n");
    return 2;
  }
  const Plan plan{.kind = static_cast<std::uint32_t>(kind - kKinds.data()),
                  .count = static_cast<std::uint32_t>(limits::number(argv[5]))};
  const int socket = tcp::connect_to(argv[2], limits::number(argv[3]));
  tcp::send(socket, &plan, sizeof plan);
  Side side;
  const Target peer = meet(socket, side);
  pauses::print(ask(socket, side, peer, plan));
  return 0;
}
