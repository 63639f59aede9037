// Completion counters: ibv_create_comp_cntr(3), ibv_qp_attach_comp_cntr(3).
#include <cerrno>
#include <cstdint>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

constexpr std::uint32_t kSend = 1u << 0, kReceive = 1u << 1, kRead = 1u << 2, kRemoteRead = 1u << 3,
                        kWrite = 1u << 4;

class CompletionCounterTest : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    mr_ = register_all(buffer_.data(), buffer_.size());
    qp_ = make_qp();
    peer_ = make_qp();
  }
  ibv_comp_cntr* make_counter(std::uint32_t type) {
    NewerCompCntrInit init{.comp_mask = 0, .type = type, .flags = 0};
    ibv_comp_cntr* made = verbs.create_comp_cntr(context, &init);
    EXPECT_NE(made, nullptr);
    return made;
  }
  int attach(ibv_qp* qp, ibv_comp_cntr* counter, std::uint32_t ops) {
    NewerAttachCompCntr attr{.comp_mask = 0, .op_mask = ops};
    return verbs.qp_attach_comp_cntr(qp, counter, &attr);
  }
  std::uint64_t done(ibv_comp_cntr* counter) {
    std::uint64_t value = 0;
    EXPECT_EQ(verbs.read_comp_cntr(counter, &value), 0);
    return value;
  }
  std::uint64_t failed(ibv_comp_cntr* counter) {
    std::uint64_t value = 0;
    EXPECT_EQ(verbs.read_err_comp_cntr(counter, &value), 0);
    return value;
  }
  void write(std::uint32_t length, unsigned flags, std::uint32_t rkey) {
    ibv_sge sge = sge_of(mr_, 0, length);
    ibv_send_wr wr = send_wr(1, IBV_WR_RDMA_WRITE, &sge);
    wr.send_flags = flags;
    wr.wr.rdma = {.remote_addr = reinterpret_cast<std::uint64_t>(&buffer_[1024]), .rkey = rkey};
    ASSERT_EQ(post(qp_, wr), 0);
  }

  std::array<char, 4096> buffer_{};
  ibv_mr* mr_ = nullptr;
  ibv_qp *qp_ = nullptr, *peer_ = nullptr;
};

TEST_F(CompletionCounterTest, CountsRequestsSignaledOrNotAndTheirErrors) {
  ibv_comp_cntr* counter = make_counter(0);
  ASSERT_EQ(attach(qp_, counter, kWrite | kRead), 0);
  connect(qp_, peer_);
  for (int i = 0; i < 4; ++i) write(8, 0, mr_->rkey);
  write(8, IBV_SEND_SIGNALED, mr_->rkey);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(done(counter), 5u);
  EXPECT_EQ(failed(counter), 0u);
  write(8, IBV_SEND_SIGNALED, mr_->rkey ^ 0x5500);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(done(counter), 5u);
  EXPECT_EQ(failed(counter), 1u);
  EXPECT_EQ(verbs.set_comp_cntr(counter, 100), 0);
  EXPECT_EQ(verbs.inc_comp_cntr(counter, 11), 0);
  EXPECT_EQ(done(counter), 111u);
}

TEST_F(CompletionCounterTest, CountsBytesOfBothSides) {
  ibv_comp_cntr *sent = make_counter(1), *received = make_counter(1);
  ASSERT_EQ(attach(qp_, sent, kSend), 0);
  ASSERT_EQ(attach(peer_, received, kReceive), 0);
  connect(qp_, peer_);
  ibv_sge sge = sge_of(mr_, 0, 3000), room = sge_of(mr_, 0, 4096);
  ASSERT_EQ(post(peer_, recv_wr(2, &room)), 0);
  ASSERT_EQ(post(qp_, send_wr(1, IBV_WR_SEND, &sge)), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(done(sent), 3000u);
  EXPECT_EQ(done(received), 3000u);
}

TEST_F(CompletionCounterTest, IsAttachedByTheRules) {
  NewerCompCntrCaps caps{};
  ASSERT_EQ(verbs.query_comp_cntr_caps(context, &caps, sizeof caps), 0);
  EXPECT_EQ(caps.supported_qp_attach_ops, kSend | kReceive | kRead | kWrite);
  ibv_comp_cntr *one = make_counter(0), *other = make_counter(0);
  EXPECT_EQ(attach(qp_, one, kRemoteRead), ENOTSUP);
  EXPECT_EQ(attach(qp_, one, 0), EINVAL);
  EXPECT_EQ(attach(qp_, one, 1u << 20), EINVAL);
  EXPECT_EQ(attach(qp_, one, kSend | kRead), 0);
  EXPECT_EQ(attach(qp_, other, kWrite | kRead), EBUSY);
  EXPECT_EQ(attach(qp_, other, kWrite), 0);
  EXPECT_EQ(verbs.destroy_comp_cntr(one), EBUSY);
  connect(qp_, peer_);
  EXPECT_EQ(attach(peer_, one, kSend), EINVAL) << "in RTS";
  EXPECT_EQ(verbs.destroy_qp(qp_), 0);
  EXPECT_EQ(verbs.destroy_comp_cntr(one), 0);
  NewerCompCntrInit bad{.comp_mask = 0, .type = 2, .flags = 0};
  EXPECT_EQ(verbs.create_comp_cntr(context, &bad), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace verbena::test
