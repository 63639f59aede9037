// ibv_qp_ex (ibv_wr_*) and ibv_cq_ex.
#include <endian.h>
#include <time.h>

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

#ifndef __SANITIZE_THREAD__  // its memcpy holds signals back
  ibv_wr_start(qpx_);
  ibv_wr_rdma_write(qpx_, mr_->rkey, address(0));
  ibv_wr_set_inline_data(qpx_, nullptr, 8);
  EXPECT_EQ(ibv_wr_complete(qpx_), EFAULT) << "not readable";
#endif

  const ibv_data_buf wraps[] = {{buffer_.data(), 16}, {buffer_.data(), SIZE_MAX}};
  ibv_wr_start(qpx_);
  ibv_wr_rdma_write(qpx_, mr_->rkey, address(0));
  ibv_wr_set_inline_data_list(qpx_, 2, wraps);
  EXPECT_EQ(ibv_wr_complete(qpx_), EINVAL) << "the sum of the lengths wraps to 15";

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

TEST_F(ExtendedTest, OperationsThatWereNotAskedForHaveNoFunction) {
  const ibv_qp_ex* const qp =
      verbs.qp_to_qp_ex(make_extended(IBV_QPT_RC, IBV_QP_EX_WITH_RDMA_WRITE));
  ASSERT_NE(qp, nullptr);
  EXPECT_NE(qp->wr_rdma_write, nullptr);
  EXPECT_NE(qp->wr_start, nullptr);
  EXPECT_EQ(qp->wr_rdma_read, nullptr);
  EXPECT_EQ(qp->wr_send, nullptr);
  EXPECT_EQ(qp->wr_atomic_write, nullptr);
  EXPECT_EQ(qp->wr_send_tso, nullptr);
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
  for (const std::uint64_t fields :
       {IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_FLOW_TAG, IBV_WC_EX_WITH_TM_INFO}) {
    EXPECT_EQ(make_extended_cq(fields), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
}

// --- a batch is whole or not at all

TEST_F(ExtendedTest, ABatchWithOneBadRequestPostsNone) {
  ibv_wr_start(qpx_);
  qpx_->wr_flags = IBV_SEND_SIGNALED;
  for (qpx_->wr_id = 0; qpx_->wr_id < 3; ++qpx_->wr_id) {
    ibv_wr_rdma_write(qpx_, mr_->rkey, address(0));
    ibv_wr_set_sge(qpx_, mr_->lkey, address(64), 8);
  }
  ibv_wr_atomic_fetch_add(qpx_, mr_->rkey, address(0), 1);
  ibv_wr_set_sge(qpx_, mr_->lkey, address(64), 4);  // an atomic returns 8 bytes
  EXPECT_EQ(ibv_wr_complete(qpx_), EINVAL);

  ibv_wr_start(qpx_);
  qpx_->wr_id = 77;
  ibv_wr_rdma_write(qpx_, mr_->rkey, address(0));
  ibv_wr_set_sge(qpx_, mr_->lkey, address(64), 8);
  ASSERT_EQ(ibv_wr_complete(qpx_), 0);
  EXPECT_EQ(wait_for_completion().wr_id, 77u) << "nothing of the refused batch was posted";
}

TEST_F(ExtendedTest, ABatchThatDoesNotFitTheQueuePostsNone) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(verbs.query_qp(qp_, &attr, IBV_QP_CAP, &init), 0);
  const std::uint32_t depth = init.cap.max_send_wr;
  const auto post_reads = [&](std::uint32_t count) {
    ibv_wr_start(qpx_);
    qpx_->wr_flags = IBV_SEND_SIGNALED;
    for (std::uint32_t i = 0; i < count; ++i) {
      qpx_->wr_id = i;
      ibv_wr_rdma_read(qpx_, mr_->rkey, address(0));
      ibv_wr_set_sge(qpx_, mr_->lkey, address(64), 8);
    }
    return ibv_wr_complete(qpx_);
  };
  EXPECT_EQ(post_reads(depth + 1), ENOMEM);
  ASSERT_EQ(post_reads(depth), 0);
  for (std::uint32_t i = 0; i < depth; ++i) EXPECT_EQ(wait_for_completion().wr_id, i);
  EXPECT_EQ(post_reads(1), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
}

TEST_F(ExtendedTest, AWindowHasItsNewKeyOnlyWhenTheBindIsPosted) {
  ibv_mw* mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  ASSERT_NE(mw, nullptr);
  const std::uint32_t old_key = mw->rkey, new_key = ibv_inc_rkey(old_key);
  const ibv_mw_bind_info info{
      .mr = mr_, .addr = address(0), .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
  ibv_wr_start(qpx_);
  ibv_wr_bind_mw(qpx_, mw, new_key, &info);
  ibv_wr_abort(qpx_);
  EXPECT_EQ(mw->rkey, old_key);

  ibv_wr_start(qpx_);
  qpx_->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_bind_mw(qpx_, mw, new_key, &info);
  ibv_wr_local_inv(qpx_, new_key);
  ibv_wr_bind_mw(qpx_, mw, ibv_inc_rkey(new_key), &info);
  ASSERT_EQ(ibv_wr_complete(qpx_), 0);
  EXPECT_EQ(mw->rkey, ibv_inc_rkey(new_key));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
}

// --- completion queues

TEST_F(ExtendedTest, CompletionsAreStampedByTheCoreClock) {
  ibv_device_attr_ex device{};
  ASSERT_EQ(verbs_get_ctx_op(context, query_device_ex)
                ->query_device_ex(context, nullptr, &device, sizeof device),
            0);
  EXPECT_EQ(device.hca_core_clock, 1'000'000u) << "kHz";
  EXPECT_EQ(device.completion_timestamp_mask, ~std::uint64_t{0});
  ibv_cq_ex* extended = make_extended_cq(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                         IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
  ASSERT_NE(extended, nullptr);
  ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
  attr.send_cq = ibv_cq_ex_to_cq(extended);
  ibv_qp *sender = verbs.create_qp(pd, &attr), *receiver = make_qp();
  connect(sender, receiver);

  const auto raw_clock = [&] {
    ibv_values_ex values{.comp_mask = IBV_VALUES_MASK_RAW_CLOCK, .raw_clock = {}};
    EXPECT_EQ(ibv_query_rt_values_ex(context, &values), 0);
    EXPECT_EQ(values.comp_mask, static_cast<std::uint32_t>(IBV_VALUES_MASK_RAW_CLOCK));
    return static_cast<std::uint64_t>(values.raw_clock.tv_nsec);
  };
  const auto wall_ns = [] {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
  };
  const std::uint64_t before = raw_clock(), wall_before = wall_ns();
  ibv_sge sge = sge_of(mr_, 0, 8);
  ibv_send_wr wr = send_wr(5, IBV_WR_RDMA_WRITE, &sge);
  wr.wr.rdma = {.remote_addr = address(512), .rkey = mr_->rkey};
  ASSERT_EQ(post(sender, wr), 0);
  ibv_poll_cq_attr poll{};
  while (ibv_start_poll(extended, &poll) == ENOENT) {
  }
  const std::uint64_t stamp = ibv_wc_read_completion_ts(extended);
  const std::uint64_t wall = ibv_wc_read_completion_wallclock_ns(extended);
  ibv_end_poll(extended);
  EXPECT_GE(stamp, before);
  EXPECT_LE(stamp, raw_clock());
  constexpr std::uint64_t kSlack = 1'000'000'000;  // the wall clock may be set meanwhile
  EXPECT_GE(wall + kSlack, wall_before);
  EXPECT_LE(wall, wall_ns() + kSlack);
}

TEST_F(ExtendedTest, UnknownRealTimeValuesAreNotReported) {
  ibv_values_ex values{.comp_mask = 1u << 5, .raw_clock = {}};
  EXPECT_EQ(ibv_query_rt_values_ex(context, &values), 0);
  EXPECT_EQ(values.comp_mask, 0u);
}

TEST_F(ExtendedTest, ASingleThreadedCQMayBePolledWithinItsPoll) {
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 16;
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  ibv_cq_ex* extended = ibv_create_cq_ex(context, &attr);
  ASSERT_NE(extended, nullptr);
  ibv_poll_cq_attr poll{};
  EXPECT_EQ(ibv_start_poll(extended, &poll), ENOENT);
  attr.flags = 1u << 7;
  EXPECT_EQ(ibv_create_cq_ex(context, &attr), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(ExtendedTest, AnIgnoredOverrunFailsNothing) {
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 2;
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  ibv_cq* small = ibv_cq_ex_to_cq(ibv_create_cq_ex(context, &attr));
  ibv_qp_init_attr init = qp_attributes(IBV_QPT_RC);
  init.recv_cq = small;
  ibv_qp *receiver = verbs.create_qp(pd, &init), *sender = make_qp();
  connect(sender, receiver);
  const int messages = small->cqe + 3;
  for (int i = 0; i < messages; ++i) {
    ASSERT_EQ(post(receiver, recv_wr(static_cast<std::uint64_t>(i), nullptr)), 0);
    ASSERT_EQ(post(sender, send_wr(0, IBV_WR_SEND, nullptr)), 0);
    EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(wait_for_completion(small).wr_id, 3u) << "the first three are overwritten";
}

TEST_F(ExtendedTest, ModerationMakesOneEventOfMany) {
  ibv_comp_channel* channel = verbs.create_comp_channel(context);
  ibv_cq* moderated = make_cq(16, channel);
  ibv_modify_cq_attr attr{.attr_mask = IBV_CQ_ATTR_MODERATE,
                          .moderate = {.cq_count = 3, .cq_period = 0xffff}};
  ASSERT_EQ(ibv_modify_cq(moderated, &attr), 0);
  attr.attr_mask = 1u << 9;
  EXPECT_EQ(ibv_modify_cq(moderated, &attr), EINVAL);
  ibv_qp_init_attr init = qp_attributes(IBV_QPT_RC);
  init.recv_cq = moderated;
  ibv_qp *receiver = verbs.create_qp(pd, &init), *sender = make_qp();
  connect(sender, receiver);
  ASSERT_EQ(ibv_req_notify_cq(moderated, 0), 0);
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(post(receiver, recv_wr(i, nullptr)), 0);
    ASSERT_EQ(post(sender, send_wr(0, IBV_WR_SEND, nullptr)), 0);
    EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  }
  ibv_cq* which = nullptr;
  void* user = nullptr;
  ASSERT_EQ(verbs.get_cq_event(channel, &which, &user), 0);  // blocks until it comes
  verbs.ack_cq_events(which, 1);
  ibv_wc taken[3];
  ASSERT_EQ(ibv_poll_cq(moderated, 3, taken), 3);

  // Fewer than the count: the period ends the wait.
  ASSERT_EQ(ibv_req_notify_cq(moderated, 0), 0);
  ASSERT_EQ(post(receiver, recv_wr(9, nullptr)), 0);
  ASSERT_EQ(post(sender, send_wr(0, IBV_WR_SEND, nullptr)), 0);
  ASSERT_EQ(verbs.get_cq_event(channel, &which, &user), 0);
  verbs.ack_cq_events(which, 1);
}

}  // namespace
}  // namespace verbena::test
