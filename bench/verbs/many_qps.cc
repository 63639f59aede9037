// The rate of small WRITEs by some of many QPs, which take turns: a plain program of the verbs,
// whose own work for each message does not grow with the number of its QPs. (perftest asks each QP,
// after each poll, whether it has room.) librdmacm connects the QPs, so that they may be of RoCE or
// of iWARP.
//
// usage: many_qps answer PORT
//        many_qps ask ADDRESS PORT QPS ACTIVE RUN SECONDS    prints: millions of WRITEs a second
// The first ACTIVE QPs take turns: RUN WRITEs of 64 bytes each time, posted one by one, of which
// the last completes visibly. A QP whose last but one run has not completed is waited for. The
// answerer sleeps in read() meanwhile.
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "bench/limits/process.h"
#include "bench/tcp.h"

namespace {

constexpr std::uint32_t kLength = 64;
constexpr std::uint32_t kPostsBetweenPolls = 64;
constexpr std::uint32_t kRunsHeld = 2;  // by each QP
constexpr int kPatienceMs = 5000;

struct Plan {  // of the asker, for both
  std::uint32_t qps = 0, run = 0;
};

struct Target {  // the answerer's memory, in the private data of its accept
  std::uint64_t address = 0;
  std::uint32_t r_key = 0;
};

// One side: its memory and its QPs, which all are on the device of the first.
class Side {
 public:
  explicit Side(const Plan& plan) : plan_(plan) {}
  void make_qp(rdma_cm_id* id);

  [[nodiscard]] Target target() const { return {.address = sge().addr, .r_key = memory_->rkey}; }
  [[nodiscard]] ibv_qp* qp(std::size_t index) const { return ids_[index]->qp; }
  [[nodiscard]] ibv_cq* cq() const { return cq_; }
  [[nodiscard]] ibv_sge sge() const {
    return {.addr = reinterpret_cast<std::uint64_t>(memory_->addr),
            .length = kLength,
            .lkey = memory_->lkey};
  }

 private:
  void use(ibv_context* device);

  alignas(64) static inline std::array<std::uint8_t, 4096> buffer_;
  Plan plan_;
  ibv_pd* pd_ = nullptr;
  ibv_mr* memory_ = nullptr;
  ibv_cq* cq_ = nullptr;
  std::vector<rdma_cm_id*> ids_;
};

void Side::use(ibv_context* device) {
  pd_ = ibv_alloc_pd(device);
  limits::require(pd_ != nullptr, "ibv_alloc_pd");
  memory_ = ibv_reg_mr(pd_, buffer_.data(), buffer_.size(),
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  limits::require(memory_ != nullptr, "ibv_reg_mr");
  cq_ = ibv_create_cq(device, static_cast<int>(kRunsHeld * plan_.qps), nullptr, nullptr, 0);
  limits::require(cq_ != nullptr, "ibv_create_cq");
}

void Side::make_qp(rdma_cm_id* id) {
  if (pd_ == nullptr) use(id->verbs);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = IBV_QPT_RC;
  init.cap = {.max_send_wr = kRunsHeld * plan_.run,
              .max_recv_wr = 1,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  limits::require(rdma_create_qp(id, pd_, &init) == 0, "rdma_create_qp");
  ids_.push_back(id);
}

// Each call of an ID without a channel waits for its event.
rdma_cm_id* make_id() {
  rdma_cm_id* id = nullptr;
  limits::require(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
  return id;
}

rdma_cm_id* listen_at_a_free_port() {
  rdma_cm_id* const listener = make_id();
  sockaddr_in here = tcp::at("0.0.0.0", 0);
  limits::require(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&here)) == 0,
                  "rdma_bind_addr");
  limits::require(rdma_listen(listener, 64) == 0, "rdma_listen");
  return listener;
}

void accept_next(rdma_cm_id* listener, Side& side) {
  rdma_cm_id* id = nullptr;
  limits::require(rdma_get_request(listener, &id) == 0, "rdma_get_request");
  side.make_qp(id);
  const Target target = side.target();
  rdma_conn_param param{};
  param.private_data = &target;
  param.private_data_len = sizeof target;
  limits::require(rdma_accept(id, &param) == 0, "rdma_accept");
}

// Returns what the answerer says of its memory.
Target connect_next(const char* address, std::uint16_t port, Side& side) {
  rdma_cm_id* const id = make_id();
  sockaddr_in there = tcp::at(address, port);
  limits::require(
      rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&there), kPatienceMs) == 0,
      "rdma_resolve_addr");
  limits::require(rdma_resolve_route(id, kPatienceMs) == 0, "rdma_resolve_route");
  side.make_qp(id);
  rdma_conn_param param{};
  param.retry_count = param.rnr_retry_count = 7;
  limits::require(rdma_connect(id, &param) == 0, "rdma_connect");
  Target target;
  const rdma_conn_param& answer = id->event->param.conn;
  limits::require(answer.private_data_len >= sizeof target, "private data");
  std::memcpy(&target, answer.private_data, sizeof target);
  return target;
}

// WRITEs by the first `active` QPs in turn.
class Writer {
 public:
  Writer(const Side& side, const Target& target, const Plan& plan, std::uint32_t active);
  std::uint64_t write_for(double seconds);  // how many

 private:
  struct Queue {
    ibv_qp* qp;
    std::uint32_t runs = 0;  // not complete
  };
  void post_run(std::uint32_t index);
  void poll();

  const Side& side_;
  const std::uint32_t run_;
  ibv_sge sge_;
  ibv_send_wr request_{};
  std::vector<Queue> queues_;
  std::uint32_t next_ = 0;
  std::uint64_t completed_ = 0;
};

Writer::Writer(const Side& side, const Target& target, const Plan& plan, std::uint32_t active)
    : side_(side), run_(plan.run), sge_(side.sge()) {
  request_.sg_list = &sge_;
  request_.num_sge = 1;
  request_.opcode = IBV_WR_RDMA_WRITE;
  request_.wr.rdma.remote_addr = target.address;
  request_.wr.rdma.rkey = target.r_key;
  for (std::uint32_t i = 0; i < active; ++i) queues_.push_back({.qp = side.qp(i)});
}

void Writer::post_run(std::uint32_t index) {
  Queue& queue = queues_[index];
  while (queue.runs == kRunsHeld) poll();
  ++queue.runs;
  request_.wr_id = index;
  for (std::uint32_t i = 1; i <= run_; ++i) {
    request_.send_flags = i == run_ ? IBV_SEND_SIGNALED : 0;
    ibv_send_wr* bad = nullptr;
    limits::require(ibv_post_send(queue.qp, &request_, &bad) == 0, "ibv_post_send");
  }
}

void Writer::poll() {
  std::array<ibv_wc, 64> done;
  const int count = ibv_poll_cq(side_.cq(), static_cast<int>(done.size()), done.data());
  for (int i = 0; i < count; ++i) {
    const ibv_wc& wc = done[static_cast<std::size_t>(i)];
    if (wc.status != IBV_WC_SUCCESS) limits::fail(ibv_wc_status_str(wc.status));
    --queues_[wc.wr_id].runs;
    completed_ += run_;
  }
}

std::uint64_t Writer::write_for(double seconds) {
  const std::uint64_t before = completed_;
  const double end = limits::now_s() + seconds;
  do {
    for (std::uint32_t posted = 0; posted < kPostsBetweenPolls; posted += run_) {
      post_run(next_);
      next_ = next_ + 1 == queues_.size() ? 0 : next_ + 1;
    }
    poll();
  } while (limits::now_s() < end);
  return completed_ - before;
}

int answer(std::size_t port) {
  const int socket = tcp::accept_one(port);
  Plan plan;
  tcp::receive(socket, &plan, sizeof plan);
  Side side(plan);
  rdma_cm_id* const listener = listen_at_a_free_port();
  const std::uint16_t listens_at = ntohs(rdma_get_src_port(listener));
  tcp::send(socket, &listens_at, sizeof listens_at);
  for (std::uint32_t i = 0; i < plan.qps; ++i) accept_next(listener, side);
  std::uint8_t end = 0;
  tcp::receive(socket, &end, sizeof end);
  return 0;
}

int ask(const char* address, std::size_t port, const Plan& plan, std::uint32_t active,
        double seconds) {
  const int socket = tcp::connect_to(address, port);
  tcp::send(socket, &plan, sizeof plan);
  std::uint16_t listens_at = 0;
  tcp::receive(socket, &listens_at, sizeof listens_at);
  Side side(plan);
  Target target;
  for (std::uint32_t i = 0; i < plan.qps; ++i) target = connect_next(address, listens_at, side);
  Writer writer(side, target, plan, active);
  writer.write_for(seconds / 10);  // all queues have been in use
  const double start = limits::now_s();
  const std::uint64_t written = writer.write_for(seconds);
  std::printf("%.4f\n", static_cast<double>(written) / (limits::now_s() - start) * 1e-6);
  const std::uint8_t end = 1;
  tcp::send(socket, &end, sizeof end);
  return 0;
}

std::uint32_t small_number(const char* text) {
  return static_cast<std::uint32_t>(limits::number(text));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "answer") == 0) return answer(limits::number(argv[2]));
  if (argc == 8 && std::strcmp(argv[1], "ask") == 0) {
    const Plan plan{.qps = small_number(argv[4]), .run = small_number(argv[6])};
    const std::uint32_t active = small_number(argv[5]);
    if (active >= 1 && active <= plan.qps && plan.run >= 1)
      return ask(argv[2], limits::number(argv[3]), plan, active,
                 static_cast<double>(limits::number(argv[7])));
  }
  std::fprintf(stderr, "usage: many_qps answer PORT | ask ADDRESS PORT QPS ACTIVE RUN SECONDS\n");
  return 2;
}
