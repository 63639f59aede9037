// WRITEs and READs that the target refuses, each after one that it took: between processes of one
// host that one needs no packets, and the refusal is the wire's all the same. ctest runs this with
// VERBENA_LOCAL=off too.
#include <poll.h>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
constexpr std::size_t kSize = 64 * 1024, kPart = 4096;

struct Target {
  ibv_pd *pd, *other_pd;
  ibv_qp* qp;
  ibv_mr*& mr;
  char* memory;
};

struct Refusal {
  const char* name;
  void (*prepare)(Target&, ibv_send_wr&);
  ibv_wc_status status = IBV_WC_REM_ACCESS_ERR;  // IBV_WC_SUCCESS: it is no refusal
  ibv_event_type event = IBV_EVENT_QP_ACCESS_ERR;
};

void replace_mr(Target& target, ibv_send_wr& wr, ibv_pd* pd, int access) {
  ASSERT_EQ(VerbsLibrary::get().dereg_mr(target.mr), 0);
  target.mr = VerbsLibrary::get().reg_mr(pd, target.memory, kSize, access);
  ASSERT_NE(target.mr, nullptr);
  wr.wr.rdma.rkey = target.mr->rkey;
}

void change_rights_of_qp(Target& target, unsigned access) {
  ibv_qp_attr attr{};
  attr.qp_access_flags = access;
  ASSERT_EQ(VerbsLibrary::get().modify_qp(target.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
}

const Refusal kRefusals[] = {
    {"Nothing", [](Target&, ibv_send_wr&) {}, IBV_WC_SUCCESS},
    {"TheLastByte",
     [](Target&, ibv_send_wr& wr) { wr.wr.rdma.remote_addr += kSize - wr.sg_list->length; },
     IBV_WC_SUCCESS},
    {"UnknownKey", [](Target&, ibv_send_wr& wr) { wr.wr.rdma.rkey ^= 0x5500; }},
    {"BeyondTheEnd",
     [](Target&, ibv_send_wr& wr) { wr.wr.rdma.remote_addr += kSize - wr.sg_list->length + 1; }},
    {"BeforeTheStart", [](Target&, ibv_send_wr& wr) { --wr.wr.rdma.remote_addr; }},
    {"AroundTheEndOfAddresses",
     [](Target&, ibv_send_wr& wr) { wr.wr.rdma.remote_addr = ~std::uint64_t{0} - 7; }},
    {"Deregistered",
     [](Target& target, ibv_send_wr&) {
       ASSERT_EQ(VerbsLibrary::get().dereg_mr(target.mr), 0);
       target.mr = nullptr;
     }},
    {"OfAnotherDomain",
     [](Target& target, ibv_send_wr& wr) { replace_mr(target, wr, target.other_pd, kAll); }},
    {"WithoutTheRight",
     [](Target& target, ibv_send_wr& wr) {
       replace_mr(
           target, wr, target.pd,
           IBV_ACCESS_LOCAL_WRITE |
               (wr.opcode == IBV_WR_RDMA_WRITE ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE));
     }},
    {"QPWithoutTheRight",
     [](Target& target, ibv_send_wr& wr) {
       change_rights_of_qp(target, wr.opcode == IBV_WR_RDMA_WRITE ? IBV_ACCESS_REMOTE_READ
                                                                  : IBV_ACCESS_REMOTE_WRITE);
     },
     IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR},
};

class RCRefusalsTest
    : public VerbsTest,
      public testing::WithParamInterface<std::tuple<ibv_wr_opcode, const Refusal*>> {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    local_mr_ = register_all(local_.data(), kSize, kAll);
    remote_mr_ = register_all(remote_.data(), kSize, kAll);
    other_pd_ = verbs.alloc_pd(context);
    peer_cq_ = make_cq();
    qp_ = make_qp();
    ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
    attr.send_cq = attr.recv_cq = peer_cq_;
    peer_ = verbs.create_qp(pd, &attr);
    ASSERT_NE(peer_, nullptr);
    connect(qp_, peer_);
  }
  ibv_send_wr request(std::uint64_t wr_id, ibv_sge* sge) const {
    ibv_send_wr wr = send_wr(wr_id, std::get<0>(GetParam()), sge);
    wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(remote_.data());
    wr.wr.rdma.rkey = remote_mr_->rkey;
    return wr;
  }
  ibv_qp_state state_of(ibv_qp* qp) const {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(verbs.query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
  }

  alignas(8) std::array<char, kSize> local_{};
  alignas(8) std::array<char, kSize> remote_{};
  ibv_mr *local_mr_ = nullptr, *remote_mr_ = nullptr;
  ibv_pd* other_pd_ = nullptr;
  ibv_cq* peer_cq_ = nullptr;
  ibv_qp *qp_ = nullptr, *peer_ = nullptr;
};

TEST_P(RCRefusalsTest, AreThoseOfTheWire) {
  const Refusal& refusal = *std::get<1>(GetParam());
  const bool is_write = std::get<0>(GetParam()) == IBV_WR_RDMA_WRITE;
  local_.fill('a');
  remote_.fill('b');
  ibv_sge sge = sge_of(local_mr_, 0, kPart);
  ASSERT_EQ(post(qp_, request(1, &sge)), 0);
  ASSERT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(local_[kPart - 1], is_write ? 'a' : 'b');
  EXPECT_EQ(remote_[kPart - 1], is_write ? 'a' : 'b');

  local_.fill('c');
  remote_.fill('d');
  ibv_send_wr wr = request(2, &sge);
  Target target{pd, other_pd_, peer_, remote_mr_, remote_.data()};
  refusal.prepare(target, wr);
  ibv_send_wr behind = wr;
  behind.wr_id = 3;
  wr.next = &behind;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(qp_, &wr, &bad), 0);
  const ibv_wc second = wait_for_completion(), third = wait_for_completion();
  EXPECT_EQ(second.wr_id, 2u);
  EXPECT_EQ(third.wr_id, 3u);
  EXPECT_EQ(second.status, refusal.status);
  if (refusal.status == IBV_WC_SUCCESS) {
    EXPECT_EQ(third.status, IBV_WC_SUCCESS);
    EXPECT_EQ(state_of(qp_), IBV_QPS_RTS);
    return;
  }
  EXPECT_EQ(third.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(state_of(qp_), IBV_QPS_ERR);
  EXPECT_EQ(state_of(peer_), IBV_QPS_ERR);
  EXPECT_THAT(local_, testing::Each('c'));
  EXPECT_THAT(remote_, testing::Each('d'));
  pollfd readable{.fd = context->async_fd, .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&readable, 1, 10'000), 1);
  ibv_async_event event{};
  ASSERT_EQ(verbs.get_async_event(context, &event), 0);
  EXPECT_EQ(event.event_type, refusal.event);
  EXPECT_EQ(event.element.qp, peer_);
  verbs.ack_async_event(&event);
}

std::vector<const Refusal*> all_refusals() {
  std::vector<const Refusal*> all;
  for (const Refusal& refusal : kRefusals) all.push_back(&refusal);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, RCRefusalsTest,
                         testing::Combine(testing::Values(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ),
                                          testing::ValuesIn(all_refusals())),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param) == IBV_WR_RDMA_WRITE
                                                  ? "Write"
                                                  : "Read") +
                                  std::get<1>(test.param)->name;
                         });

}  // namespace
}  // namespace verbena::test
