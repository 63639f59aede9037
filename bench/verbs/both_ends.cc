// Both ends of a connection in one thread: what the software takes for each message, with no other
// core to wait for. Also what the drop-in library is trained with (cmake/VerbenaTraining.cmake).
//
// usage: both_ends [MESSAGES]     prints a line for each kind of message: nanoseconds, or for those
//                                 that go to and fro, of one way
#include <infiniband/verbs.h>

#include <array>
#include <utility>
#include <vector>

#include "bench/limits/process.h"
#include "bench/verbs/connect.h"

namespace {

constexpr std::uint32_t kRoom = 1 << 20, kQKey = 17;
constexpr int kDepth = 128, kReceives = 16, kList = 32;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC;

// One end: a device, memory and a QP. All of it lasts as long as the process.
class End {
 public:
  End(ibv_device* device, ibv_qp_type type);
  void connect_to(const End& peer);

  void post_receive();
  void post(ibv_wr_opcode opcode, std::uint32_t length, const End& peer, int count = 1);
  void await_sent() { await(sent_, nullptr); }
  void await_received() { await(received_, nullptr); }
  // The same, asleep.
  void await_event();

 private:
  void ready_for_datagrams(ibv_ah_attr& way);
  void aim(ibv_send_wr& request, const End& peer) const;
  static void await(ibv_cq* cq, ibv_comp_channel* channel);
  [[nodiscard]] bool is_datagram() const { return qp_->qp_type == IBV_QPT_UD; }

  ibv_context* context_;
  ibv_pd* pd_;
  ibv_comp_channel* channel_;
  ibv_cq *sent_, *received_;
  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(kRoom);
  ibv_mr* region_;
  verbs::Address address_;
  ibv_qp* qp_;
  ibv_ah* way_ = nullptr;  // UD
};

End::End(ibv_device* device, ibv_qp_type type) : context_(ibv_open_device(device)) {
  limits::require(context_ != nullptr, "ibv_open_device");
  pd_ = ibv_alloc_pd(context_);
  channel_ = ibv_create_comp_channel(context_);
  sent_ = ibv_create_cq(context_, kDepth, nullptr, nullptr, 0);
  received_ = ibv_create_cq(context_, kDepth, nullptr, channel_, 0);
  region_ = ibv_reg_mr(pd_, memory_.data(), kRoom, kAccess);
  limits::require(sent_ != nullptr && received_ != nullptr && region_ != nullptr, "ibv_reg_mr");
  address_ = verbs::address_of(context_);
  ibv_qp_init_attr init{};
  init.send_cq = sent_;
  init.recv_cq = received_;
  init.cap = {.max_send_wr = kDepth,
              .max_recv_wr = kDepth,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  init.qp_type = type;
  qp_ = ibv_create_qp(pd_, &init);
  limits::require(qp_ != nullptr, "ibv_create_qp");
}

void End::connect_to(const End& peer) {
  ibv_ah_attr way = verbs::way_to(peer.address_.gid, address_);
  if (is_datagram())
    ready_for_datagrams(way);
  else
    verbs::connect(qp_, way, peer.qp_->qp_num, IBV_MTU_4096, kAccess);
  for (int i = 0; i < kReceives; ++i) post_receive();
}

void End::ready_for_datagrams(ibv_ah_attr& way) {
  way_ = ibv_create_ah(pd_, &way);
  limits::require(way_ != nullptr, "ibv_create_ah");
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = kQKey;
  const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
  limits::require(ibv_modify_qp(qp_, &attr, mask) == 0, "INIT");
  attr.qp_state = IBV_QPS_RTR;
  limits::require(ibv_modify_qp(qp_, &attr, IBV_QP_STATE) == 0, "RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = verbs::kFirstPSN;
  limits::require(ibv_modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "RTS");
}

void End::post_receive() {
  ibv_sge sge{reinterpret_cast<std::uint64_t>(memory_.data()), kRoom, region_->lkey};
  ibv_recv_wr request{}, *bad = nullptr;
  request.sg_list = &sge;
  request.num_sge = 1;
  limits::require(ibv_post_recv(qp_, &request, &bad) == 0, "ibv_post_recv");
}

void End::aim(ibv_send_wr& request, const End& peer) const {
  const auto there = reinterpret_cast<std::uint64_t>(peer.memory_.data());
  if (is_datagram()) {
    request.wr.ud = {.ah = way_, .remote_qpn = peer.qp_->qp_num, .remote_qkey = kQKey};
  } else if (request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    request.wr.atomic = {
        .remote_addr = there, .compare_add = 1, .swap = 0, .rkey = peer.region_->rkey};
  } else {
    request.wr.rdma = {.remote_addr = there, .rkey = peer.region_->rkey};
  }
}

// A list, of which the last completes visibly.
void End::post(ibv_wr_opcode opcode, std::uint32_t length, const End& peer, int count) {
  ibv_sge sge{reinterpret_cast<std::uint64_t>(memory_.data()), length, region_->lkey};
  std::array<ibv_send_wr, kList> list{};
  for (int i = 0; i < count; ++i) {
    ibv_send_wr& request = list[static_cast<std::size_t>(i)];
    request.next = i + 1 < count ? &request + 1 : nullptr;
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags = i + 1 < count ? 0 : IBV_SEND_SIGNALED;
    aim(request, peer);
  }
  ibv_send_wr* bad = nullptr;
  limits::require(ibv_post_send(qp_, list.data(), &bad) == 0, "ibv_post_send");
}

void End::await(ibv_cq* cq, ibv_comp_channel* channel) {
  ibv_wc completion{};
  int count = 0;
  while ((count = ibv_poll_cq(cq, 1, &completion)) == 0) {
    if (channel == nullptr) continue;
    limits::require(ibv_req_notify_cq(cq, 0) == 0, "ibv_req_notify_cq");
    if ((count = ibv_poll_cq(cq, 1, &completion)) != 0) break;
    void* context = nullptr;
    limits::require(ibv_get_cq_event(channel, &cq, &context) == 0, "ibv_get_cq_event");
    ibv_ack_cq_events(cq, 1);
  }
  if (count == 1 && completion.status == IBV_WC_SUCCESS) return;
  std::fprintf(stderr, "completion: %s\n", ibv_wc_status_str(completion.status));
  std::exit(1);
}

void End::await_event() { await(received_, channel_); }

template <typename Message>
void measure(const char* what, std::size_t messages, Message message) {
  const double start = limits::now_s();
  for (std::size_t i = 0; i < messages; ++i) message();
  std::printf("%-24s %10.0f ns\n", what,
              (limits::now_s() - start) / static_cast<double>(messages) * 1e9);
}

void measure_connected(ibv_device* device, std::size_t messages) {
  End a(device, IBV_QPT_RC), b(device, IBV_QPT_RC);
  a.connect_to(b);
  b.connect_to(a);
  const auto request = [&](ibv_wr_opcode opcode, std::uint32_t length, int count = 1) {
    return [&a, &b, opcode, length, count] {
      a.post(opcode, length, b, count);
      a.await_sent();
    };
  };
  measure("WRITE 8 B", messages, request(IBV_WR_RDMA_WRITE, 8));
  measure("WRITE 64 B, a list of 32", messages / kList, request(IBV_WR_RDMA_WRITE, 64, kList));
  measure("WRITE 1 MiB", messages / 500, request(IBV_WR_RDMA_WRITE, kRoom));
  measure("READ 8 B", messages / 2, request(IBV_WR_RDMA_READ, 8));
  measure("READ 1 MiB", messages / 500, request(IBV_WR_RDMA_READ, kRoom));
  measure("fetch and add", messages / 2, request(IBV_WR_ATOMIC_FETCH_AND_ADD, 8));
  const auto send = [&](std::uint32_t length) {
    return [&a, &b, length] {
      a.post(IBV_WR_SEND, length, b);
      b.await_received();
      b.post_receive();
      a.await_sent();
    };
  };
  measure("SEND 8 B", messages / 2, send(8));
  measure("SEND 64 KiB", messages / 100, send(64 << 10));
  measure("SEND 8 B, events", messages / 20, [&] {
    a.post(IBV_WR_SEND, 8, b);
    b.await_event();
    b.post_receive();
    a.await_sent();
  });
  std::array<End*, 2> ends{&a, &b};
  a.post(IBV_WR_SEND, 8, b);
  measure("SEND 8 B, to and fro", 2 * messages, [&ends] {
    auto& [from, to] = ends;
    to->await_received();
    to->post_receive();
    to->post(IBV_WR_SEND, 8, *from);
    from->await_sent();
    std::swap(from, to);
  });
}

void measure_datagrams(ibv_device* device, std::size_t messages) {
  End a(device, IBV_QPT_UD), b(device, IBV_QPT_UD);
  a.connect_to(b);
  b.connect_to(a);
  measure("UD SEND 8 B", messages, [&] {
    a.post(IBV_WR_SEND, 8, b);
    a.await_sent();
    b.await_received();
    b.post_receive();
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t messages = argc > 1 ? limits::number(argv[1]) : 100'000;
  ibv_device** const devices = ibv_get_device_list(nullptr);
  limits::require(devices != nullptr && devices[0] != nullptr, "no RDMA device");
  measure_connected(devices[0], messages);
  measure_datagrams(devices[0], messages / 4);
  return 0;
}
