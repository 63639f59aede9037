// One table: each way that a request takes between processes of one host, through each refusal that
// a responder or a requester has. The outcome is that of packets on a wire, at both ends, whatever
// the way. ctest runs this with VERBENA_LOCAL=off and with VERBENA_SHARE=on too.
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/abi/verbs_fixture.h"
#include "tests/support/standin_cuda.h"

namespace verbena::test {
namespace {

constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                     IBV_ACCESS_REMOTE_ATOMIC;
constexpr std::uint32_t kSize = 256 << 10;

// A peer that has mapped the memory notices within 10 ms (host/local/peer_mappings.h).
constexpr std::chrono::milliseconds kUntilPeersNotice{20};

// --- the ways

struct Way {
  const char* name;
  ibv_wr_opcode opcode;
  std::uint32_t length;
  std::uint32_t shift = 0;  // of the target in its page, against the source
  unsigned flags = 0;
};

const Way kWays[] = {
    {"Write1", IBV_WR_RDMA_WRITE, 1},
    {"Write8", IBV_WR_RDMA_WRITE, 8},
    {"Write8Inline", IBV_WR_RDMA_WRITE, 8, 0, IBV_SEND_INLINE},
    {"Write4096", IBV_WR_RDMA_WRITE, 4096},
    {"WriteShifted", IBV_WR_RDMA_WRITE, 20'000, 8},
    {"WriteLong", IBV_WR_RDMA_WRITE, 128 << 10},
    {"Read1", IBV_WR_RDMA_READ, 1},
    {"Read8", IBV_WR_RDMA_READ, 8},
    {"Read4096", IBV_WR_RDMA_READ, 4096},
    {"ReadShifted", IBV_WR_RDMA_READ, 20'000, 8},
    {"ReadLong", IBV_WR_RDMA_READ, 128 << 10},
    {"FetchAdd", IBV_WR_ATOMIC_FETCH_AND_ADD, 8},
    {"Send8", IBV_WR_SEND, 8},
    {"Send8Inline", IBV_WR_SEND, 8, 0, IBV_SEND_INLINE},
    {"Send4096", IBV_WR_SEND, 4096},
};

// Memory: the kind of the target's memory. kOfAGPU: of both ends', on the stand-in for the CUDA
// driver.
enum class Memory { kPrivate, kOfAFile, kOfAGPU };

StandinCuda::Pointer gpu_pointer(const char* at) {
  return reinterpret_cast<StandinCuda::Pointer>(at);
}

bool is_send(const Way& way) { return way.opcode == IBV_WR_SEND; }
bool is_rdma(const Way& way) { return !is_send(way); }
bool is_write(const Way& way) { return way.opcode == IBV_WR_RDMA_WRITE; }
bool is_read(const Way& way) { return way.opcode == IBV_WR_RDMA_READ; }
bool is_atomic(const Way& way) { return way.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD; }
bool is_answered(const Way& way) { return is_read(way) || is_atomic(way); }
bool changes_target(const Way& way) { return is_write(way) || is_atomic(way); }
bool is_any(const Way&) { return true; }
bool is_copied_later(const Way& way) { return (way.flags & IBV_SEND_INLINE) == 0; }
bool is_refused_locally(const Way& way) { return is_copied_later(way) && !is_atomic(way); }
bool is_long(const Way& way) { return (is_write(way) || is_read(way)) && way.length > 1024; }

// --- the two ends

struct Refusal;

class RCRefusalsTest
    : public VerbsTest,
      public testing::WithParamInterface<std::tuple<const Way*, Memory, const Refusal*>> {
 public:
  struct Attributes {
    std::uint8_t max_dest_rd_atomic = 4;  // of the peer
    ibv_mtu peer_mtu = IBV_MTU_1024;
    std::uint32_t sq_psn = 100;
    std::uint8_t timeout = 14, retry_cnt = 7;  // 67 ms
    ibv_qp_state peer_state = IBV_QPS_RTS;
  };
  // Both ends anew. A peer in RESET, INIT or ERR does not answer.
  void reconnect(const Attributes& to);
  void reconnect_peer(const Attributes& to);
  // The target's region anew, in the peer's domain or in another one.
  void replace_target(int access) { replace_target_in(pd, access); }
  void move_target() { replace_target_in(other_pd_, kAll); }
  void deregister_target() {
    ASSERT_EQ(verbs.dereg_mr(remote_mr_), 0);
    remote_mr_ = nullptr;
  }
  // Nothing else comes to lie there: a mapping without access stands for the hole.
  void unmap_target() {
    is_there_ = false;
    if (is_on_gpu()) {
      ASSERT_EQ(cuda().mem_free(gpu_pointer(there)), 0);
      return;
    }
    ASSERT_EQ(::mmap(there, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              there);
    std::this_thread::sleep_for(kUntilPeersNotice);
  }
  void change_rights_of_peer(unsigned access) const {
    ibv_qp_attr attr{};
    attr.qp_access_flags = access;
    ASSERT_EQ(verbs.modify_qp(peer_, &attr, IBV_QP_ACCESS_FLAGS), 0);
  }
  void set_state_of_peer(ibv_qp_state state) const {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    ASSERT_EQ(verbs.modify_qp(peer_, &attr, IBV_QP_STATE), 0);
  }
  // So that both ends are at another PSN than they began with.
  void exchange_a_message();
  const Way& way() const { return *std::get<0>(GetParam()); }
  bool is_on_gpu() const { return std::get<Memory>(GetParam()) == Memory::kOfAGPU; }

  char *here = nullptr, *there = nullptr;
  // The parameters of the request that is refused.
  ibv_sge sge{};
  std::uint64_t target = 0;
  std::uint32_t r_key = 0;
  std::uint32_t receive_length = 0, receive_key = 0;
  int receives = 2;

 protected:
  void SetUp() override;
  void TearDown() override;
  ibv_send_wr request(std::uint64_t wr_id);
  void post_receives(int count) const;
  ibv_qp_state state_of(ibv_qp* of) const;
  void do_without_refusal();
  void check_completions(const Refusal& refusal);
  void check_memory() const;
  char* make_memory(Memory kind);
  void fill(char* at, char value) const;
  std::vector<char> content_of(char* at) const;
  void check_event(ibv_event_type type) const;

  ibv_pd* other_pd_ = nullptr;
  ibv_cq* peer_cq_ = nullptr;
  ibv_qp *qp_ = nullptr, *peer_ = nullptr;
  ibv_mr *local_mr_ = nullptr, *remote_mr_ = nullptr;
  bool is_there_ = true;  // the target
  void* gpu_context_ = nullptr;

 private:
  void replace_target_in(ibv_pd* domain, int access);
  void to_reset(ibv_qp* of) const;
  void connect_one(ibv_qp* of, const ibv_qp* to, const Attributes& attributes,
                   ibv_qp_state last) const;
};

void protect(char* memory, int protection) {
  ASSERT_EQ(::mprotect(memory, kSize, protection), 0);
  std::this_thread::sleep_for(kUntilPeersNotice);
}

// --- the refusals

struct Refusal {
  const char* name;
  bool (*concerns)(const Way& way);
  void (*prepare)(RCRefusalsTest& ends);
  ibv_wc_status status = IBV_WC_SUCCESS;          // IBV_WC_SUCCESS: it is no refusal
  std::optional<ibv_event_type> event{};          // at the peer
  ibv_wc_status receive_status = IBV_WC_SUCCESS;  // IBV_WC_SUCCESS: the receive is not in error
  enum class Changes { kNothing, kSome } changes = Changes::kNothing;  // in memory
};
using Changes = Refusal::Changes;

using Ends = RCRefusalsTest;
constexpr RCRefusalsTest::Attributes kImpatient{.timeout = 8, .retry_cnt = 1};

RCRefusalsTest::Attributes silent_in(ibv_qp_state state) {
  RCRefusalsTest::Attributes attributes = kImpatient;
  attributes.peer_state = state;
  return attributes;
}

const Refusal kRefusals[] = {
    {"Nothing", is_any, [](Ends&) {}},
    {"TheLastByte", is_rdma,
     [](Ends& ends) {
       ends.target = reinterpret_cast<std::uint64_t>(ends.there) + kSize - ends.sge.length;
     }},

    // keys, bounds, rights
    {"UnknownKey", is_rdma, [](Ends& ends) { ends.r_key ^= 0x5500; }, IBV_WC_REM_ACCESS_ERR,
     IBV_EVENT_QP_ACCESS_ERR},
    {"BeyondTheEnd", is_rdma,
     [](Ends& ends) {
       ends.target = reinterpret_cast<std::uint64_t>(ends.there) + kSize - ends.sge.length +
                     (is_atomic(ends.way()) ? 8 : 1);
     },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"BeforeTheStart", is_rdma,
     [](Ends& ends) { ends.target = reinterpret_cast<std::uint64_t>(ends.there) - 8; },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"AroundTheEndOfAddresses", is_rdma, [](Ends& ends) { ends.target = ~std::uint64_t{0} - 7; },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"Deregistered", is_rdma, [](Ends& ends) { ends.deregister_target(); }, IBV_WC_REM_ACCESS_ERR,
     IBV_EVENT_QP_ACCESS_ERR},
    {"OfAnotherDomain", is_rdma, [](Ends& ends) { ends.move_target(); }, IBV_WC_REM_ACCESS_ERR,
     IBV_EVENT_QP_ACCESS_ERR},
    {"WithoutTheRight", is_rdma,
     [](Ends& ends) {
       const int right = is_write(ends.way())  ? IBV_ACCESS_REMOTE_WRITE
                         : is_read(ends.way()) ? IBV_ACCESS_REMOTE_READ
                                               : IBV_ACCESS_REMOTE_ATOMIC;
       ends.replace_target(kAll & ~right);
     },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"QPWithoutTheRight", is_rdma,
     [](Ends& ends) {
       const unsigned right = is_write(ends.way())  ? IBV_ACCESS_REMOTE_WRITE
                              : is_read(ends.way()) ? IBV_ACCESS_REMOTE_READ
                                                    : IBV_ACCESS_REMOTE_ATOMIC;
       ends.change_rights_of_peer(unsigned{kAll} & ~right);
     },
     IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR},

    // resources and lengths that both ends have agreed on
    {"NoResourceForReads", is_answered,
     [](Ends& ends) { ends.reconnect({.max_dest_rd_atomic = 0}); }, IBV_WC_REM_INV_REQ_ERR,
     IBV_EVENT_QP_REQ_ERR},
    {"NoResourceForReadsIsNoneForOthers", [](const Way& way) { return !is_answered(way); },
     [](Ends& ends) { ends.reconnect({.max_dest_rd_atomic = 0}); }},
    {"AnotherMTU", [](const Way& way) { return is_write(way) && is_long(way); },
     [](Ends& ends) { ends.reconnect({.peer_mtu = IBV_MTU_512}); }, IBV_WC_REM_INV_REQ_ERR,
     IBV_EVENT_QP_REQ_ERR},

    // states and PSNs
    {"PeerInRTR", is_any, [](Ends& ends) { ends.reconnect({.peer_state = IBV_QPS_RTR}); },
     IBV_WC_SUCCESS, IBV_EVENT_COMM_EST},
    {"PeerInSQD", is_any, [](Ends& ends) { ends.set_state_of_peer(IBV_QPS_SQD); }},
    {"PeerInReset", is_any,
     [](Ends& ends) {
       ends.reconnect(silent_in(IBV_QPS_RESET));
       ends.receives = 0;
     },
     IBV_WC_RETRY_EXC_ERR},
    {"PeerInInit", is_any, [](Ends& ends) { ends.reconnect(silent_in(IBV_QPS_INIT)); },
     IBV_WC_RETRY_EXC_ERR},
    {"PeerInError", is_any, [](Ends& ends) { ends.reconnect(silent_in(IBV_QPS_ERR)); },
     IBV_WC_RETRY_EXC_ERR},
    {"AnotherPSN", is_any,
     [](Ends& ends) {
       Ends::Attributes attributes = kImpatient;
       attributes.sq_psn = 200;
       ends.reconnect(attributes);
     },
     IBV_WC_RETRY_EXC_ERR},
    {"PeerBeganAnew", is_any,
     [](Ends& ends) {
       ends.reconnect(kImpatient);
       ends.exchange_a_message();
       ends.reconnect_peer(kImpatient);
     },
     IBV_WC_RETRY_EXC_ERR},

    // the target's pages
    {"UnmappedPages", is_rdma, [](Ends& ends) { ends.unmap_target(); }, IBV_WC_REM_ACCESS_ERR,
     IBV_EVENT_QP_ACCESS_ERR},

    // receives
    {"NoReceive", is_send,
     [](Ends& ends) {
       ends.reconnect({});
       ends.receives = 0;
     },
     IBV_WC_RNR_RETRY_EXC_ERR},
    {"ReceiveTooSmall", is_send, [](Ends& ends) { --ends.receive_length; }, IBV_WC_REM_INV_REQ_ERR,
     std::nullopt, IBV_WC_LOC_LEN_ERR, Changes::kSome},
    {"ReceiveOfAnUnknownKey", is_send, [](Ends& ends) { ends.receive_key ^= 0x5500; },
     IBV_WC_REM_OP_ERR, std::nullopt, IBV_WC_LOC_PROT_ERR},
    {"ReceiveWithoutTheRight", is_send,
     [](Ends& ends) { ends.replace_target(IBV_ACCESS_REMOTE_READ); }, IBV_WC_REM_OP_ERR,
     std::nullopt, IBV_WC_LOC_PROT_ERR},
    {"ReceiveIntoUnmappedPages", is_send, [](Ends& ends) { ends.unmap_target(); },
     IBV_WC_REM_OP_ERR, std::nullopt, IBV_WC_LOC_PROT_ERR},

    // the requester's own memory. Packets before the one that fails have changed something, as has
    // an atomic when its response is stored.
    {"OwnUnknownKey", is_refused_locally, [](Ends& ends) { ends.sge.lkey ^= 0x5500; },
     IBV_WC_LOC_PROT_ERR},
    {"OwnBounds", is_refused_locally,
     [](Ends& ends) {
       ends.sge.addr = reinterpret_cast<std::uint64_t>(ends.here) + kSize - ends.sge.length + 1;
     },
     IBV_WC_LOC_PROT_ERR, std::nullopt, IBV_WC_SUCCESS, Changes::kSome},
};

// Of the protection of pages, which a GPU's memory does not have.
const Refusal kRefusalsOfPages[] = {
    {"ReadOnlyPages", changes_target, [](Ends& ends) { protect(ends.there, PROT_READ); },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"ReadOnlyPagesAreRead", is_read, [](Ends& ends) { protect(ends.there, PROT_READ); }},
    {"PagesWithoutAccess", is_rdma, [](Ends& ends) { protect(ends.there, PROT_NONE); },
     IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
    {"ReceiveIntoReadOnlyPages", is_send, [](Ends& ends) { protect(ends.there, PROT_READ); },
     IBV_WC_REM_OP_ERR, std::nullopt, IBV_WC_LOC_PROT_ERR},
    {"OwnReadOnlyPages", is_read, [](Ends& ends) { protect(ends.here, PROT_READ); },
     IBV_WC_LOC_PROT_ERR},
    {"OwnReadOnlyPagesAndAnAtomic", is_atomic, [](Ends& ends) { protect(ends.here, PROT_READ); },
     IBV_WC_LOC_PROT_ERR, std::nullopt, IBV_WC_SUCCESS, Changes::kSome},
    {"OwnReadOnlyPagesAreSent",
     [](const Way& way) { return !is_answered(way) && is_copied_later(way); },
     [](Ends& ends) { protect(ends.here, PROT_READ); }},
    {"OwnPagesWithoutAccess", is_refused_locally, [](Ends& ends) { protect(ends.here, PROT_NONE); },
     IBV_WC_LOC_PROT_ERR},
};

// --- what the ends do

void RCRefusalsTest::SetUp() {
  VerbsTest::SetUp();
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's memcpy holds signals back: a fault in it never ends";
#endif
  if (is_on_gpu()) {
    ASSERT_EQ(cuda().ctx_create(&gpu_context_, 0, 0), 0);
  }
  here = make_memory(is_on_gpu() ? Memory::kOfAGPU : Memory::kPrivate);
  there = make_memory(std::get<Memory>(GetParam()));
  ASSERT_NE(here, nullptr);
  ASSERT_NE(there, nullptr);
  other_pd_ = verbs.alloc_pd(context);
  local_mr_ = register_all(here, kSize, kAll);
  remote_mr_ = register_all(there, kSize, kAll);
  peer_cq_ = make_cq();
  ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
  attr.cap.max_inline_data = 8;
  qp_ = verbs.create_qp(pd, &attr);
  attr.send_cq = attr.recv_cq = peer_cq_;
  peer_ = verbs.create_qp(pd, &attr);
  ASSERT_NE(peer_, nullptr);
  reconnect({});
}

void RCRefusalsTest::TearDown() {
  VerbsTest::TearDown();
  if (is_on_gpu()) {
    (void)cuda().mem_free(gpu_pointer(here));
    (void)cuda().mem_free(gpu_pointer(there));
    (void)cuda().ctx_set_current(nullptr);
    return;
  }
  ::munmap(here, kSize);
  ::munmap(there, kSize);
}

// Returns kSize bytes, or nullptr.
char* RCRefusalsTest::make_memory(Memory kind) {
  constexpr int kRights = PROT_READ | PROT_WRITE;
  StandinCuda::Pointer gpu = 0;
  if (kind == Memory::kOfAGPU && cuda().mem_alloc(&gpu, kSize) != 0) return nullptr;
  if (kind == Memory::kOfAGPU) return reinterpret_cast<char*>(gpu);
  const bool is_private = kind == Memory::kPrivate;
  const int file = is_private ? -1 : ::memfd_create("program", MFD_CLOEXEC);
  if (!is_private && ::ftruncate(file, kSize) != 0) return nullptr;
  void* const memory = ::mmap(nullptr, kSize, kRights,
                              is_private ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);
  if (!is_private) ::close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

void RCRefusalsTest::fill(char* at, char value) const {
  const std::vector<char> all(kSize, value);
  if (!is_on_gpu()) {
    std::memcpy(at, all.data(), kSize);
  } else {
    ASSERT_EQ(cuda().to_device(gpu_pointer(at), all.data(), kSize), 0);
  }
}

std::vector<char> RCRefusalsTest::content_of(char* at) const {
  if (!is_on_gpu()) return {at, at + kSize};
  std::vector<char> all(kSize);
  EXPECT_EQ(cuda().to_host(all.data(), gpu_pointer(at), kSize), 0);
  return all;
}

void RCRefusalsTest::replace_target_in(ibv_pd* domain, int access) {
  ASSERT_EQ(verbs.dereg_mr(remote_mr_), 0);
  remote_mr_ = verbs.reg_mr(domain, there, kSize, access);
  ASSERT_NE(remote_mr_, nullptr);
  r_key = remote_mr_->rkey;
  receive_key = remote_mr_->lkey;
}

void RCRefusalsTest::to_reset(ibv_qp* of) const {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(verbs.modify_qp(of, &attr, IBV_QP_STATE), 0);
}

void RCRefusalsTest::connect_one(ibv_qp* of, const ibv_qp* to, const Attributes& attributes,
                                 ibv_qp_state last) const {
  to_reset(of);
  if (last == IBV_QPS_RESET) return;
  ASSERT_EQ(to_init(of), 0);
  if (last == IBV_QPS_INIT) return;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = of == peer_ ? attributes.peer_mtu : IBV_MTU_1024;
  attr.dest_qp_num = to->qp_num;
  attr.rq_psn = 100;
  attr.max_dest_rd_atomic = attributes.max_dest_rd_atomic;
  attr.min_rnr_timer = 1;
  attr.ah_attr = loopback_route();
  ASSERT_EQ(verbs.modify_qp(of, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            0);
  if (last == IBV_QPS_RTR) return;
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = of == qp_ ? attributes.sq_psn : 100;
  attr.timeout = attributes.timeout;
  attr.retry_cnt = attributes.retry_cnt;
  attr.rnr_retry = 0;
  attr.max_rd_atomic = 4;
  ASSERT_EQ(verbs.modify_qp(of, &attr,
                            IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
            0);
  if (last != IBV_QPS_RTS) set_state_of_peer(last);
}

void RCRefusalsTest::reconnect_peer(const Attributes& to) {
  connect_one(peer_, qp_, to, to.peer_state);
}

void RCRefusalsTest::reconnect(const Attributes& to) {
  connect_one(qp_, peer_, to, IBV_QPS_RTS);
  reconnect_peer(to);
}

void RCRefusalsTest::exchange_a_message() {
  ASSERT_EQ(post(peer_, recv_wr(7, nullptr)), 0);
  ASSERT_EQ(post(qp_, send_wr(7, IBV_WR_SEND, nullptr)), 0);
  ASSERT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  ASSERT_EQ(wait_for_completion(peer_cq_).status, IBV_WC_SUCCESS);
}

ibv_send_wr RCRefusalsTest::request(std::uint64_t wr_id) {
  ibv_send_wr wr = send_wr(wr_id, way().opcode, &sge);
  wr.send_flags |= way().flags;
  if (is_atomic(way()))
    wr.wr.atomic = {.remote_addr = target, .compare_add = 1, .swap = 0, .rkey = r_key};
  else
    wr.wr.rdma = {.remote_addr = target, .rkey = r_key};
  return wr;
}

void RCRefusalsTest::post_receives(int count) const {
  ibv_sge room{.addr = target, .length = receive_length, .lkey = receive_key};
  for (int i = 0; i < count && is_send(way()); ++i) ASSERT_EQ(post(peer_, recv_wr(9, &room)), 0);
}

ibv_qp_state RCRefusalsTest::state_of(ibv_qp* of) const {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(verbs.query_qp(of, &attr, IBV_QP_STATE, &init), 0);
  return attr.qp_state;
}

// So that all that a way prepares is there when the refusal comes.
void RCRefusalsTest::do_without_refusal() {
  fill(here, 'a');
  fill(there, 'b');
  sge = {.addr = reinterpret_cast<std::uint64_t>(here),
         .length = way().length,
         .lkey = local_mr_->lkey};
  target = reinterpret_cast<std::uint64_t>(there) + way().shift;
  r_key = remote_mr_->rkey;
  receive_key = remote_mr_->lkey;
  receive_length = way().length;
  post_receives(1);
  ASSERT_EQ(post(qp_, request(1)), 0);
  ASSERT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  ASSERT_TRUE(!is_send(way()) || wait_for_completion(peer_cq_).status == IBV_WC_SUCCESS);
  const bool is_copied = std::memcmp(content_of(here).data(),
                                     content_of(there).data() + way().shift, way().length) == 0;
  EXPECT_NE(is_copied, is_atomic(way()));
  fill(here, 'c');
  fill(there, 'd');
}

void RCRefusalsTest::check_completions(const Refusal& refusal) {
  const ibv_wc second = wait_for_completion(), third = wait_for_completion();
  EXPECT_EQ(second.wr_id, 2u);
  EXPECT_EQ(third.wr_id, 3u);
  EXPECT_EQ(second.status, refusal.status);
  const bool is_refused = refusal.status != IBV_WC_SUCCESS;
  EXPECT_EQ(third.status, is_refused ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
  EXPECT_EQ(state_of(qp_), is_refused ? IBV_QPS_ERR : IBV_QPS_RTS);
  EXPECT_TRUE(!is_refused || !refusal.event || state_of(peer_) == IBV_QPS_ERR);
  if (refusal.receive_status == IBV_WC_SUCCESS) return;
  EXPECT_EQ(wait_for_completion(peer_cq_).status, refusal.receive_status);
  EXPECT_EQ(state_of(peer_), IBV_QPS_ERR);
}

void RCRefusalsTest::check_memory() const {
  const auto all_are = [this](char* at, char value) {
    if (!is_on_gpu()) {
      ASSERT_EQ(::mprotect(at, kSize, PROT_READ), 0);
    }
    EXPECT_EQ(content_of(at), std::vector<char>(kSize, value));
  };
  all_are(here, 'c');
  if (is_there_) all_are(there, 'd');
}

void RCRefusalsTest::check_event(ibv_event_type type) const {
  pollfd readable{.fd = context->async_fd, .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&readable, 1, 10'000), 1);
  ibv_async_event event{};
  ASSERT_EQ(verbs.get_async_event(context, &event), 0);
  EXPECT_EQ(event.event_type, type);
  EXPECT_EQ(event.element.qp, peer_);
  verbs.ack_async_event(&event);
}

TEST_P(RCRefusalsTest, AreThoseOfTheWire) {
  const Refusal& refusal = *std::get<const Refusal*>(GetParam());
  do_without_refusal();
  refusal.prepare(*this);
  ibv_send_wr second = request(2), third = request(3), *bad = nullptr;
  second.next = &third;
  post_receives(receives);
  ASSERT_EQ(ibv_post_send(qp_, &second, &bad), 0);
  check_completions(refusal);
  if (refusal.status != IBV_WC_SUCCESS && refusal.changes == Changes::kNothing) check_memory();
  if (refusal.event) check_event(*refusal.event);
}

// Inline data is never in a GPU's memory.
bool is_possible(const Way& way, Memory memory) {
  return memory != Memory::kOfAGPU || is_copied_later(way);
}

std::vector<std::tuple<const Way*, Memory, const Refusal*>> all_cases() {
  std::vector<std::tuple<const Way*, Memory, const Refusal*>> all;
  const auto add = [&all](const Refusal& refusal, std::initializer_list<Memory> memories) {
    for (const Way& way : kWays)
      for (const Memory memory : memories)
        if (refusal.concerns(way) && is_possible(way, memory))
          all.emplace_back(&way, memory, &refusal);
  };
  for (const Refusal& refusal : kRefusals)
    add(refusal, {Memory::kPrivate, Memory::kOfAFile, Memory::kOfAGPU});
  for (const Refusal& refusal : kRefusalsOfPages)
    add(refusal, {Memory::kPrivate, Memory::kOfAFile});
  return all;
}

std::string name_of(const testing::TestParamInfo<RCRefusalsTest::ParamType>& test) {
  const auto& [way, memory, refusal] = test.param;
  const char* const where = memory == Memory::kPrivate   ? "To"
                            : memory == Memory::kOfAFile ? "ToAFile"
                                                         : "OnAGPUTo";
  return std::string(way->name) + where + refusal->name;
}

INSTANTIATE_TEST_SUITE_P(All, RCRefusalsTest, testing::ValuesIn(all_cases()), name_of);

}  // namespace
}  // namespace verbena::test
