// One table: each way that a WRITE or READ of iWARP takes between processes of one host (a copy, or
// a message of the TCP connection), through each refusal of the peer. A refused request changes no
// memory, and the connection ends at both ends. RFC 5040, 7; docs/iwarp.md. ctest runs this with
// VERBENA_LOCAL=off and with VERBENA_SHARE=on too.
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "tests/rdmacm/rdmacm_fixture.h"
#include "tests/support/end_memory.h"

namespace verbena::test {
namespace {

constexpr int kRemote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | kRemote;
constexpr std::uint32_t kSize = EndMemory::kSize;
constexpr std::chrono::seconds kPatience{20};

struct Way {
  const char* name;
  ibv_wr_opcode opcode;
  std::uint32_t length;
};

const Way kWays[] = {
    {"Write8", IBV_WR_RDMA_WRITE, 8},
    {"Write4096", IBV_WR_RDMA_WRITE, 4096},
    {"WriteLong", IBV_WR_RDMA_WRITE, 128 << 10},
    {"Read8", IBV_WR_RDMA_READ, 8},
    {"Read4096", IBV_WR_RDMA_READ, 4096},
    {"ReadLong", IBV_WR_RDMA_READ, 128 << 10},
};

bool is_any(const Way&) { return true; }
bool is_write(const Way& way) { return way.opcode == IBV_WR_RDMA_WRITE; }
bool is_read(const Way& way) { return way.opcode == IBV_WR_RDMA_READ; }
int right_of(const Way& way) {
  return is_write(way) ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
}

// The kind of the target's memory. kOfAGPU: of both ends'.
using Memory = EndMemory::Kind;

struct Refusal;
using Case = std::tuple<const Way*, Memory, const Refusal*>;

class StreamRefusalsTest : public RDMACMTest, public testing::WithParamInterface<Case> {
 public:
  // --- changes of the target
  void replace_target(int access) { replace_target_in(pair_.server->pd, access); }
  void move_target() { replace_target_in(ibv_alloc_pd(pair_.server->verbs), kAll); }
  void deregister_target() { ASSERT_EQ(ibv_dereg_mr(std::exchange(remote_mr_, nullptr)), 0); }
  void change_rights_of_target(int access);
  void change_rights_of_peer(int access) const;
  void open_window();
  void close_window() const;

  const Way& way() const { return *std::get<const Way*>(GetParam()); }

  std::optional<EndMemory> here, there;
  // The parameters of the request.
  ibv_sge sge{};
  std::uint64_t target = 0;
  std::uint32_t r_key = 0;

 protected:
  void SetUp() override;
  void TearDown() override;
  static bool is_on_gpu() { return std::get<Memory>(GetParam()) == Memory::kOfAGPU; }
  void fill(char own, char targets) const;
  [[nodiscard]] bool is_copied() const;
  void replace_target_in(ibv_pd* domain, int access);
  static int post(const rdma_cm_id* id, ibv_send_wr wr);
  void post_request();
  static ibv_wc wait_for_completion(const rdma_cm_id* id);
  static ibv_qp_state state_of(const rdma_cm_id* id);
  static ibv_qp_state wait_for_error(const rdma_cm_id* id);
  void do_without_refusal();
  void check_success();
  void check_refusal(const Refusal& refusal);

  Pair pair_{};
  ibv_mr *local_mr_ = nullptr, *remote_mr_ = nullptr;
  ibv_mw* mw_ = nullptr;
  void* gpu_context_ = nullptr;
};

// --- the refusals

struct Refusal {
  const char* name;
  bool (*concerns)(const Way& way);
  void (*prepare)(StreamRefusalsTest& ends);
  // A READ's; a WRITE may be complete before the peer sees it. IBV_WC_SUCCESS: no refusal.
  ibv_wc_status status = IBV_WC_SUCCESS;
  enum class Changes { kNothing, kSome } changes = Changes::kNothing;  // in memory
};
using Changes = Refusal::Changes;

using Ends = StreamRefusalsTest;

const Refusal kRefusals[] = {
    {"Nothing", is_any, [](Ends&) {}},
    {"TheLastByte", is_any,
     [](Ends& ends) { ends.target = ends.there->address() + kSize - ends.sge.length; }},
    {"UnknownKey", is_any, [](Ends& ends) { ends.r_key ^= 0x5500; }, IBV_WC_REM_ACCESS_ERR},
    // The segments of a long WRITE are placed one by one. RFC 5041, 5
    {"BeyondTheEnd", is_any,
     [](Ends& ends) { ends.target = ends.there->address() + kSize - ends.sge.length + 1; },
     IBV_WC_REM_ACCESS_ERR, Changes::kSome},
    {"BeforeTheStart", is_any, [](Ends& ends) { ends.target = ends.there->address() - 8; },
     IBV_WC_REM_ACCESS_ERR},
    {"Deregistered", is_any, [](Ends& ends) { ends.deregister_target(); }, IBV_WC_REM_ACCESS_ERR},
    {"OfAnotherDomain", is_any, [](Ends& ends) { ends.move_target(); }, IBV_WC_REM_ACCESS_ERR},
    {"WithoutTheRight", is_any,
     [](Ends& ends) { ends.replace_target(kAll & ~right_of(ends.way())); }, IBV_WC_REM_ACCESS_ERR},
    {"ReregisteredWithoutTheRight", is_any,
     [](Ends& ends) { ends.change_rights_of_target(kAll & ~right_of(ends.way())); },
     IBV_WC_REM_ACCESS_ERR},
    {"QPWithoutTheRight", is_any,
     [](Ends& ends) { ends.change_rights_of_peer(kAll & ~right_of(ends.way())); },
     IBV_WC_REM_ACCESS_ERR},
    {"WindowOfType2", is_any, [](Ends& ends) { ends.open_window(); }},
    {"InvalidatedWindow", is_any,
     [](Ends& ends) {
       ends.open_window();
       ends.close_window();
     },
     IBV_WC_REM_ACCESS_ERR},
    {"UnmappedPages", is_write, [](Ends& ends) { ends.there->unmap(); }, IBV_WC_REM_ACCESS_ERR},
    // The peer has granted the READ, and fails. RFC 5040, 4.8: a local catastrophic error
    {"UnmappedPagesAreNotRead", is_read, [](Ends& ends) { ends.there->unmap(); },
     IBV_WC_WR_FLUSH_ERR},
    {"OwnUnknownKey", is_any, [](Ends& ends) { ends.sge.lkey ^= 0x5500; }, IBV_WC_LOC_PROT_ERR},
};

// Of the protection of pages, which a GPU's memory does not have.
const Refusal kRefusalsOfPages[] = {
    {"ReadOnlyPages", is_write, [](Ends& ends) { ends.there->protect(PROT_READ); },
     IBV_WC_REM_ACCESS_ERR},
    {"ReadOnlyPagesAreRead", is_read, [](Ends& ends) { ends.there->protect(PROT_READ); }},
    {"PagesWithoutAccess", is_write, [](Ends& ends) { ends.there->protect(PROT_NONE); },
     IBV_WC_REM_ACCESS_ERR},
    {"PagesWithoutAccessAreNotRead", is_read, [](Ends& ends) { ends.there->protect(PROT_NONE); },
     IBV_WC_WR_FLUSH_ERR},
    {"OwnReadOnlyPages", is_read, [](Ends& ends) { ends.here->protect(PROT_READ); },
     IBV_WC_LOC_PROT_ERR},
    {"OwnPagesWithoutAccess", is_any, [](Ends& ends) { ends.here->protect(PROT_NONE); },
     IBV_WC_LOC_PROT_ERR},
};

// --- both ends

void StreamRefusalsTest::SetUp() {
  RDMACMTest::SetUp();
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's memcpy holds signals back: a fault in it never ends";
#endif
  pair_ = connect_pair();
  ASSERT_NE(pair_.server, nullptr);
  if (is_on_gpu()) {
    ASSERT_EQ(cuda().ctx_create(&gpu_context_, 0, 0), 0);
  }
  here.emplace(is_on_gpu() ? Memory::kOfAGPU : Memory::kPrivate);
  there.emplace(std::get<Memory>(GetParam()));
  local_mr_ = ibv_reg_mr(pair_.client->pd, here->data(), kSize, kAll);
  remote_mr_ = ibv_reg_mr(pair_.server->pd, there->data(), kSize, kAll);
  ASSERT_NE(local_mr_, nullptr);
  ASSERT_NE(remote_mr_, nullptr);
}

void StreamRefusalsTest::TearDown() {
  if (mw_ != nullptr) {
    EXPECT_EQ(ibv_dealloc_mw(mw_), 0);
  }
  for (ibv_mr* const mr : {local_mr_, remote_mr_})
    if (mr != nullptr) {
      EXPECT_EQ(ibv_dereg_mr(mr), 0);
    }
  RDMACMTest::TearDown();
  here.reset();
  there.reset();
  if (gpu_context_ != nullptr) (void)cuda().ctx_set_current(nullptr);
}

void StreamRefusalsTest::replace_target_in(ibv_pd* domain, int access) {
  deregister_target();
  remote_mr_ = ibv_reg_mr(domain, there->data(), kSize, access);
  ASSERT_NE(remote_mr_, nullptr);
  r_key = remote_mr_->rkey;
}

void StreamRefusalsTest::change_rights_of_target(int access) {
  ASSERT_EQ(ibv_rereg_mr(remote_mr_, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, access), 0);
  r_key = remote_mr_->rkey;
}

void StreamRefusalsTest::change_rights_of_peer(int access) const {
  ibv_qp_attr attr{};
  attr.qp_access_flags = static_cast<unsigned>(access);
  ASSERT_EQ(ibv_modify_qp(pair_.server->qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
}

void StreamRefusalsTest::open_window() {
  mw_ = ibv_alloc_mw(pair_.server->pd, IBV_MW_TYPE_2);
  ASSERT_NE(mw_, nullptr);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_BIND_MW;
  wr.bind_mw = {
      .mw = mw_,
      .rkey = ibv_inc_rkey(mw_->rkey),
      .bind_info = {
          .mr = remote_mr_, .addr = there->address(), .length = kSize, .mw_access_flags = kRemote}};
  ASSERT_EQ(post(pair_.server, wr), 0);
  ASSERT_EQ(wait_for_completion(pair_.server).status, IBV_WC_SUCCESS);
  r_key = mw_->rkey;
}

// The request keeps the key of the window.
void StreamRefusalsTest::close_window() const {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_LOCAL_INV;
  wr.invalidate_rkey = r_key;
  ASSERT_EQ(post(pair_.server, wr), 0);
  ASSERT_EQ(wait_for_completion(pair_.server).status, IBV_WC_SUCCESS);
}

int StreamRefusalsTest::post(const rdma_cm_id* id, ibv_send_wr wr) {
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(id->qp, &wr, &bad);
}

void StreamRefusalsTest::post_request() {
  ibv_send_wr wr{};
  wr.opcode = way().opcode;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.wr.rdma = {.remote_addr = target, .rkey = r_key};
  ASSERT_EQ(post(pair_.client, wr), 0);
}

ibv_wc StreamRefusalsTest::wait_for_completion(const rdma_cm_id* id) {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  ibv_wc wc{};
  while (std::chrono::steady_clock::now() < give_up)
    if (ibv_poll_cq(id->send_cq, 1, &wc) == 1) return wc;
  ADD_FAILURE() << "no completion in time";
  wc.status = IBV_WC_GENERAL_ERR;
  return wc;
}

ibv_qp_state StreamRefusalsTest::state_of(const rdma_cm_id* id) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init), 0);
  return attr.qp_state;
}

ibv_qp_state StreamRefusalsTest::wait_for_error(const rdma_cm_id* id) {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (state_of(id) != IBV_QPS_ERR && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return state_of(id);
}

void StreamRefusalsTest::fill(char own, char targets) const {
  here->fill(own);
  there->fill(targets);
}

bool StreamRefusalsTest::is_copied() const {
  const std::uint64_t offset = target - there->address();
  return std::memcmp(here->content().data(), there->content().data() + offset, way().length) == 0;
}

// The first request of a connection is always a message; the second may be a copy.
void StreamRefusalsTest::do_without_refusal() {
  sge = {.addr = here->address(), .length = way().length, .lkey = local_mr_->lkey};
  target = there->address();
  r_key = remote_mr_->rkey;
  for (const char* const content : {"ab", "cd"}) {
    fill(content[0], content[1]);
    post_request();
    check_success();
  }
  fill('e', 'f');
}

// A WRITE is complete when TCP has its last byte, and the peer has it later.
void StreamRefusalsTest::check_success() {
  EXPECT_EQ(wait_for_completion(pair_.client).status, IBV_WC_SUCCESS);
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (!is_copied() && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(is_copied());
  EXPECT_EQ(state_of(pair_.client), IBV_QPS_RTS);
}

void StreamRefusalsTest::check_refusal(const Refusal& refusal) {
  const ibv_wc_status status = wait_for_completion(pair_.client).status;
  const bool may_be_complete = is_write(way()) && refusal.status == IBV_WC_REM_ACCESS_ERR;
  EXPECT_TRUE(status == refusal.status || may_be_complete) << status;
  EXPECT_EQ(wait_for_error(pair_.client), IBV_QPS_ERR);
  EXPECT_EQ(wait_for_error(pair_.server), IBV_QPS_ERR);
  if (refusal.changes == Changes::kSome) return;
  here->expect_all('e');
  there->expect_all('f');
}

TEST_P(StreamRefusalsTest, ChangeNothingAndEndTheConnection) {
  const Refusal& refusal = *std::get<const Refusal*>(GetParam());
  do_without_refusal();
  refusal.prepare(*this);
  post_request();
  if (refusal.status == IBV_WC_SUCCESS)
    check_success();
  else
    check_refusal(refusal);
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  const auto add = [&all](const Refusal& refusal, std::initializer_list<Memory> memories) {
    for (const Way& way : kWays)
      for (const Memory memory : memories)
        if (refusal.concerns(way)) all.emplace_back(&way, memory, &refusal);
  };
  for (const Refusal& refusal : kRefusals)
    add(refusal, {Memory::kPrivate, Memory::kOfAFile, Memory::kOfAGPU});
  for (const Refusal& refusal : kRefusalsOfPages)
    add(refusal, {Memory::kPrivate, Memory::kOfAFile});
  return all;
}

std::string name_of(const testing::TestParamInfo<Case>& test) {
  const auto& [way, memory, refusal] = test.param;
  const char* const where = memory == Memory::kPrivate   ? "To"
                            : memory == Memory::kOfAFile ? "ToAFile"
                                                         : "OnAGPUTo";
  return std::string(way->name) + where + refusal->name;
}

INSTANTIATE_TEST_SUITE_P(All, StreamRefusalsTest, testing::ValuesIn(all_cases()), name_of);

}  // namespace
}  // namespace verbena::test
