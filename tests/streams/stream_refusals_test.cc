// One table: each way that a WRITE or READ of iWARP takes between processes of one host (a copy, or
// a message of the TCP connection), through each refusal of the peer. A refused request changes no
// memory, and the connection ends at both ends. RFC 5040, 7; docs/iwarp.md. ctest runs this with
// VERBENA_LOCAL=off and with VERBENA_SHARE=on too.
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <tuple>

#include "tests/rdmacm/rdmacm_fixture.h"

namespace verbena::test {
namespace {

constexpr int kRemote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | kRemote;
constexpr std::uint32_t kSize = 256 << 10;  // bytes of each end's memory
constexpr std::chrono::seconds kPatience{20};
// A peer that has mapped the memory notices within 10 ms (host/local/peer_mappings.h).
constexpr std::chrono::milliseconds kUntilPeersNotice{20};

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

enum class Memory { kPrivate, kOfAFile };

std::uint64_t address_of(const char* at) { return reinterpret_cast<std::uint64_t>(at); }

struct Refusal;
using Case = std::tuple<const Way*, Memory, const Refusal*>;

class StreamRefusalsTest : public RDMACMTest, public testing::WithParamInterface<Case> {
 public:
  // --- changes of the target
  void replace_target(int access) { replace_target_in(pair_.server->pd, access); }
  void move_target() { replace_target_in(ibv_alloc_pd(pair_.server->verbs), kAll); }
  void deregister_target() const { ASSERT_EQ(ibv_dereg_mr(remote_mr_), 0); }
  void change_rights_of_target(int access);
  void change_rights_of_peer(int access) const;
  void open_window();
  void close_window() const;
  static void protect(char* memory, int protection);
  void unmap_target();

  const Way& way() const { return *std::get<const Way*>(GetParam()); }

  char *here = nullptr, *there = nullptr;
  // The parameters of the request.
  ibv_sge sge{};
  std::uint64_t target = 0;
  std::uint32_t r_key = 0;

 protected:
  void SetUp() override;
  void TearDown() override;
  static char* make_memory(Memory kind);
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
  bool has_target_ = true;
};

// --- the refusals

struct Refusal {
  const char* name;
  bool (*concerns)(const Way& way);
  void (*prepare)(StreamRefusalsTest& ends);
  // Of a READ. A WRITE may be complete before the peer sees it. IBV_WC_SUCCESS: it is no refusal.
  ibv_wc_status status = IBV_WC_SUCCESS;
  enum class Changes { kNothing, kSome } changes = Changes::kNothing;  // in memory
};
using Changes = Refusal::Changes;

using Ends = StreamRefusalsTest;

const Refusal kRefusals[] = {
    {"Nothing", is_any, [](Ends&) {}},
    {"TheLastByte", is_any,
     [](Ends& ends) { ends.target = address_of(ends.there) + kSize - ends.sge.length; }},
    {"UnknownKey", is_any, [](Ends& ends) { ends.r_key ^= 0x5500; }, IBV_WC_REM_ACCESS_ERR},
    // The segments of a long WRITE are placed one by one. RFC 5041, 5
    {"BeyondTheEnd", is_any,
     [](Ends& ends) { ends.target = address_of(ends.there) + kSize - ends.sge.length + 1; },
     IBV_WC_REM_ACCESS_ERR, Changes::kSome},
    {"BeforeTheStart", is_any, [](Ends& ends) { ends.target = address_of(ends.there) - 8; },
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
    {"ReadOnlyPages", is_write, [](Ends& ends) { Ends::protect(ends.there, PROT_READ); },
     IBV_WC_REM_ACCESS_ERR},
    {"ReadOnlyPagesAreRead", is_read, [](Ends& ends) { Ends::protect(ends.there, PROT_READ); }},
    {"PagesWithoutAccess", is_write, [](Ends& ends) { Ends::protect(ends.there, PROT_NONE); },
     IBV_WC_REM_ACCESS_ERR},
    {"UnmappedPages", is_write, [](Ends& ends) { ends.unmap_target(); }, IBV_WC_REM_ACCESS_ERR},
    // The peer has granted the READ, and fails. RFC 5040, 4.8: a local catastrophic error
    {"PagesWithoutAccessAreNotRead", is_read,
     [](Ends& ends) { Ends::protect(ends.there, PROT_NONE); }, IBV_WC_WR_FLUSH_ERR},
    {"UnmappedPagesAreNotRead", is_read, [](Ends& ends) { ends.unmap_target(); },
     IBV_WC_WR_FLUSH_ERR},
    {"OwnUnknownKey", is_any, [](Ends& ends) { ends.sge.lkey ^= 0x5500; }, IBV_WC_LOC_PROT_ERR},
    {"OwnReadOnlyPages", is_read, [](Ends& ends) { Ends::protect(ends.here, PROT_READ); },
     IBV_WC_LOC_PROT_ERR},
    {"OwnPagesWithoutAccess", is_any, [](Ends& ends) { Ends::protect(ends.here, PROT_NONE); },
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
  here = make_memory(Memory::kPrivate);
  there = make_memory(std::get<Memory>(GetParam()));
  ASSERT_NE(here, nullptr);
  ASSERT_NE(there, nullptr);
  local_mr_ = ibv_reg_mr(pair_.client->pd, here, kSize, kAll);
  remote_mr_ = ibv_reg_mr(pair_.server->pd, there, kSize, kAll);
  ASSERT_NE(remote_mr_, nullptr);
}

void StreamRefusalsTest::TearDown() {
  if (mw_ != nullptr) {
    EXPECT_EQ(ibv_dealloc_mw(mw_), 0);
  }
  RDMACMTest::TearDown();
  ::munmap(here, kSize);
  ::munmap(there, kSize);
}

// Returns kSize bytes, or nullptr.
char* StreamRefusalsTest::make_memory(Memory kind) {
  const bool is_private = kind == Memory::kPrivate;
  const int file = is_private ? -1 : ::memfd_create("program", MFD_CLOEXEC);
  if (!is_private && ::ftruncate(file, kSize) != 0) return nullptr;
  void* const memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                              is_private ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);
  if (!is_private) ::close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

void StreamRefusalsTest::replace_target_in(ibv_pd* domain, int access) {
  deregister_target();
  remote_mr_ = ibv_reg_mr(domain, there, kSize, access);
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
  wr.bind_mw = {.mw = mw_,
                .rkey = ibv_inc_rkey(mw_->rkey),
                .bind_info = {.mr = remote_mr_,
                              .addr = address_of(there),
                              .length = kSize,
                              .mw_access_flags = kRemote}};
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

void StreamRefusalsTest::protect(char* memory, int protection) {
  ASSERT_EQ(::mprotect(memory, kSize, protection), 0);
  std::this_thread::sleep_for(kUntilPeersNotice);
}

// Nothing else comes to lie there: a mapping without access stands for the hole.
void StreamRefusalsTest::unmap_target() {
  has_target_ = false;
  ASSERT_EQ(::mmap(there, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), there);
  std::this_thread::sleep_for(kUntilPeersNotice);
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

// The first request of a connection is always a message; the second may be a copy.
void StreamRefusalsTest::do_without_refusal() {
  sge = {.addr = address_of(here), .length = way().length, .lkey = local_mr_->lkey};
  target = address_of(there);
  r_key = remote_mr_->rkey;
  for (int i = 0; i < 2; ++i) {
    std::memset(here, 'a' + 2 * i, kSize);
    std::memset(there, 'b' + 2 * i, kSize);
    post_request();
    check_success();
  }
  std::memset(here, 'e', kSize);
  std::memset(there, 'f', kSize);
}

// A WRITE is complete when TCP has its last octet. A READ behind it shows that the peer has it.
void StreamRefusalsTest::check_success() {
  EXPECT_EQ(wait_for_completion(pair_.client).status, IBV_WC_SUCCESS);
  const char* const at = there + (target - address_of(there));
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  while (std::memcmp(here, at, way().length) != 0 && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(std::memcmp(here, at, way().length), 0);
  EXPECT_EQ(state_of(pair_.client), IBV_QPS_RTS);
}

void StreamRefusalsTest::check_refusal(const Refusal& refusal) {
  const ibv_wc_status status = wait_for_completion(pair_.client).status;
  const bool may_be_complete = is_write(way()) && refusal.status == IBV_WC_REM_ACCESS_ERR;
  EXPECT_TRUE(status == refusal.status || may_be_complete) << status;
  EXPECT_EQ(wait_for_error(pair_.client), IBV_QPS_ERR);
  EXPECT_EQ(wait_for_error(pair_.server), IBV_QPS_ERR);
  if (refusal.changes == Changes::kSome) return;
  const auto all_are = [](char* at, char value) {
    ASSERT_EQ(::mprotect(at, kSize, PROT_READ), 0);
    EXPECT_EQ(std::string(at, kSize), std::string(kSize, value));
  };
  all_are(here, 'e');
  if (has_target_) all_are(there, 'f');
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
  for (const Refusal& refusal : kRefusals)
    for (const Way& way : kWays)
      for (const Memory memory : {Memory::kPrivate, Memory::kOfAFile})
        if (refusal.concerns(way)) all.emplace_back(&way, memory, &refusal);
  return all;
}

std::string name_of(const testing::TestParamInfo<Case>& test) {
  const auto& [way, memory, refusal] = test.param;
  return std::string(way->name) + (memory == Memory::kPrivate ? "To" : "ToAFile") + refusal->name;
}

INSTANTIATE_TEST_SUITE_P(All, StreamRefusalsTest, testing::ValuesIn(all_cases()), name_of);

}  // namespace
}  // namespace verbena::test
