// ibv_qp_ex (ibv_wr_*) and ibv_cq_ex.
#include <endian.h>

#include <cerrno>
#include <string>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

class ExtendedTest : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    mr_ = register_all(buffer_.data(), buffer_.size());
    qp_ = make_extended(IBV_QPT_RC, kRCOperations);
    peer_ = make_qp();
    ASSERT_NE(qp_, nullptr);
    connect(qp_, peer_);
    qpx_ = verbs.qp_to_qp_ex(qp_);
    ASSERT_NE(qpx_, nullptr);
  }

  // nullptr and errno when it is refused.
  ibv_qp* make_extended(ibv_qp_type type, std::uint64_t operations) {
    const ibv_qp_init_attr basic = qp_attributes(type);
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = basic.send_cq;
    attr.recv_cq = basic.recv_cq;
    attr.cap = basic.cap;
    attr.qp_type = type;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = pd;
    attr.send_ops_flags = operations;
    return verbs_get_ctx_op(context, create_qp_ex)->create_qp_ex(context, &attr);
  }
  ibv_cq_ex* make_extended_cq(std::uint64_t fields) {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 16;
    attr.wc_flags = fields;
    return ibv_create_cq_ex(context, &attr);
  }
  std::uint64_t address(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t>(buffer_.data()) + offset;
  }

  static constexpr std::uint64_t kRCOperations =
      IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
      IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
      IBV_QP_EX_WITH_SEND_WITH_INV;
  alignas(8) std::array<char, 4096> buffer_{};
  ibv_mr* mr_ = nullptr;
  ibv_qp *qp_ = nullptr, *peer_ = nullptr;
  ibv_qp_ex* qpx_ = nullptr;
};

TEST_F(ExtendedTest, ABatchIsPostedByComplete) {
  buffer_.fill('a');
  ibv_wr_start(qpx_);
  qpx_->wr_flags = IBV_SEND_SIGNALED;
  qpx_->wr_id = 1;
  ibv_wr_rdma_write(qpx_, mr_->rkey, address(1024));
  ibv_wr_set_sge(qpx_, mr_->lkey, address(0), 512);
  char text[] = "set inline";
  const ibv_data_buf pieces[] = {{text, 4}, {text + 4, sizeof text - 4}};
  qpx_->wr_id = 2;
  ibv_wr_rdma_write(qpx_, mr_->rkey, address(2048));
  ibv_wr_set_inline_data_list(qpx_, 2, pieces);
  text[0] = '!';
  const ibv_sge list[] = {sge_of(mr_, 2048, 4), sge_of(mr_, 3072, 8)};
  qpx_->wr_id = 3;
  ibv_wr_rdma_read(qpx_, mr_->rkey, address(0));
  ibv_wr_set_sge_list(qpx_, 2, list);
  ASSERT_EQ(ibv_wr_complete(qpx_), 0);

  for (const std::uint64_t wr_id : {1u, 2u, 3u}) {
    const ibv_wc wc = wait_for_completion();
    EXPECT_EQ(wc.wr_id, wr_id);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(std::string(buffer_.data() + 2052), "inline") << "its first 4 bytes were read over";
}

TEST_F(ExtendedTest, AnAbortedBatchIsNotPosted) {
  ibv_wr_start(qpx_);
  qpx_->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_write(qpx_, mr_->rkey, address(0));
  ibv_wr_set_sge(qpx_, mr_->lkey, address(64), 8);
  ibv_wr_abort(qpx_);
  ibv_wr_start(qpx_);
  EXPECT_EQ(ibv_wr_complete(qpx_), 0) << "empty";
  ibv_wc wc{};
  EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
}

TEST_F(ExtendedTest, AMistakeFailsTheBatch) {
  const std::array<ibv_sge, 40> many{};
  ibv_wr_start(qpx_);
  ibv_wr_rdma_write(qpx_, mr_->rkey, address(0));
  ibv_wr_set_sge_list(qpx_, many.size(), many.data());
  EXPECT_EQ(ibv_wr_complete(qpx_), EINVAL) << "too many elements";

  ibv_wr_start(qpx_);
  ibv_wr_rdma_write(qpx_, mr_->rkey, address(0));
  ibv_wr_set_inline_data(qpx_, buffer_.data(), buffer_.size());
  EXPECT_EQ(ibv_wr_complete(qpx_), EINVAL) << "too long";

  ibv_wr_start(qpx_);
  ibv_wr_set_sge(qpx_, mr_->lkey, address(0), 8);
  EXPECT_EQ(ibv_wr_complete(qpx_), EINVAL) << "of no request";

  ibv_wr_start(qpx_);
  for (int i = 0; i < 100'000; ++i) ibv_wr_rdma_write(qpx_, mr_->rkey, address(0));
  EXPECT_EQ(ibv_wr_complete(qpx_), ENOMEM) << "more than the queue holds";

  ibv_wr_start(qpx_);
  qpx_->wr_id = 9;
  qpx_->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_write(qpx_, mr_->rkey, address(0));
  EXPECT_EQ(ibv_wr_complete(qpx_), 0) << "the next batch is a new one";
  EXPECT_EQ(wait_for_completion().wr_id, 9u);
}

TEST_F(ExtendedTest, OnlyOperationsOfTheServiceAreGranted) {
  EXPECT_NE(make_extended(IBV_QPT_UD, IBV_QP_EX_WITH_SEND), nullptr);
  EXPECT_EQ(make_extended(IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(make_extended(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(make_extended(IBV_QPT_RC, IBV_QP_EX_WITH_TSO), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(ExtendedTest, CompletionsAreReadFieldByField) {
  ibv_cq_ex* extended = make_extended_cq(IBV_WC_STANDARD_FLAGS);
  ASSERT_NE(extended, nullptr);
  ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
  attr.recv_cq = ibv_cq_ex_to_cq(extended);
  ibv_qp* receiver = verbs.create_qp(pd, &attr);
  ibv_qp* sender = make_qp();
  connect(sender, receiver);
  ibv_poll_cq_attr poll{};
  EXPECT_EQ(ibv_start_poll(extended, &poll), ENOENT);
  for (const std::uint64_t wr_id : {1u, 2u}) ASSERT_EQ(post(receiver, recv_wr(wr_id, nullptr)), 0);
  for (const std::uint32_t number : {10u, 20u}) {
    ibv_send_wr wr = send_wr(number, IBV_WR_SEND_WITH_IMM, nullptr);
    wr.imm_data = htobe32(number);
    ASSERT_EQ(post(sender, wr), 0);
    EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  }

  ASSERT_EQ(ibv_start_poll(extended, &poll), 0);
  EXPECT_EQ(extended->wr_id, 1u);
  EXPECT_EQ(extended->status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_wc_read_opcode(extended), IBV_WC_RECV);
  EXPECT_EQ(ibv_wc_read_imm_data(extended), htobe32(10));
  EXPECT_EQ(ibv_wc_read_qp_num(extended), receiver->qp_num);
  EXPECT_EQ(ibv_wc_read_wc_flags(extended), static_cast<unsigned>(IBV_WC_WITH_IMM));
  ASSERT_EQ(ibv_next_poll(extended), 0);
  EXPECT_EQ(extended->wr_id, 2u);
  EXPECT_EQ(ibv_wc_read_imm_data(extended), htobe32(20));
  EXPECT_EQ(ibv_next_poll(extended), ENOENT);
  ibv_end_poll(extended);
}

TEST_F(ExtendedTest, FieldsThatNoCompletionHasAreNotSupported) {
  EXPECT_EQ(make_extended_cq(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(make_extended_cq(IBV_WC_EX_WITH_TM_INFO), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

}  // namespace
}  // namespace verbena::test
