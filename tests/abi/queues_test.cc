// CQs, SRQs, QPs and address handles: their life, their limits, and what is refused.
#include <cerrno>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

using QueuesTest = VerbsTest;

TEST_F(QueuesTest, CQHoldsAtLeastWhatWasAsked) {
  ibv_cq* made = make_cq(100);
  EXPECT_GE(made->cqe, 100);
  EXPECT_EQ(verbs.resize_cq(made, 1000), 0);
  EXPECT_GE(made->cqe, 1000);
  EXPECT_EQ(made->cq_context, this);
  EXPECT_EQ(verbs.destroy_cq(made), 0);
}

TEST_F(QueuesTest, BadCQsAreRefused) {
  const auto refused = [&](int cqe, int vector) {
    errno = 0;
    return verbs.create_cq(context, cqe, nullptr, nullptr, vector) == nullptr && errno == EINVAL;
  };
  EXPECT_TRUE(refused(0, 0));
  EXPECT_TRUE(refused(-1, 0));
  EXPECT_TRUE(refused(1 << 30, 0));
  EXPECT_TRUE(refused(1, -1));
  EXPECT_TRUE(refused(1, context->num_comp_vectors));
  EXPECT_EQ(verbs.resize_cq(cq, 0), EINVAL);
}

TEST_F(QueuesTest, AUsedCQIsBusy) {
  ibv_qp* qp = make_qp();
  EXPECT_EQ(verbs.destroy_cq(cq), EBUSY);
  EXPECT_EQ(verbs.destroy_qp(qp), 0);
  EXPECT_EQ(verbs.destroy_cq(cq), 0);
}

TEST_F(QueuesTest, QPTellsWhatWasGranted) {
  ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
  ibv_qp* qp = verbs.create_qp(pd, &attr);
  ASSERT_NE(qp, nullptr);
  EXPECT_GE(attr.cap.max_send_wr, 16u);
  EXPECT_GE(attr.cap.max_inline_data, 64u);
  EXPECT_EQ(qp->state, IBV_QPS_RESET);
  EXPECT_EQ(qp->qp_type, IBV_QPT_RC);
  EXPECT_NE(qp->qp_num, 0u);
  EXPECT_EQ(verbs.qp_to_qp_ex(qp), nullptr) << "made without send_ops_flags";

  ibv_qp_attr now{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(verbs.query_qp(qp, &now, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(now.qp_state, IBV_QPS_RESET);
  EXPECT_EQ(init.send_cq, cq);
  EXPECT_EQ(init.cap.max_send_wr, attr.cap.max_send_wr);
}

TEST_F(QueuesTest, BadQPsAreRefused) {
  const auto error_of = [&](auto&& change) {
    ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
    change(attr);
    errno = 0;
    return verbs.create_qp(pd, &attr) == nullptr ? errno : 0;
  };
  EXPECT_EQ(error_of([](auto& attr) { attr.send_cq = nullptr; }), EINVAL);
  EXPECT_EQ(error_of([](auto& attr) { attr.recv_cq = nullptr; }), EINVAL);
  EXPECT_EQ(error_of([](auto& attr) { attr.qp_type = static_cast<ibv_qp_type>(77); }), EINVAL);
  EXPECT_EQ(error_of([](auto& attr) { attr.qp_type = IBV_QPT_RAW_PACKET; }), EOPNOTSUPP);
  EXPECT_EQ(error_of([](auto& attr) { attr.qp_type = IBV_QPT_DRIVER; }), EOPNOTSUPP);
  EXPECT_EQ(error_of([](auto& attr) { attr.cap.max_send_wr = 1u << 30; }), EINVAL);
  EXPECT_EQ(error_of([](auto& attr) { attr.cap.max_send_sge = 1000; }), EINVAL);
  EXPECT_EQ(error_of([](auto& attr) { attr.cap.max_inline_data = 1u << 30; }), EINVAL);
}

TEST_F(QueuesTest, AttributesComeBackAsTheyWereSet) {
  ibv_qp *qp = make_qp(), *peer = make_qp();
  connect(qp, peer);
  EXPECT_EQ(qp->state, IBV_QPS_RTS);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(verbs.query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attr.dest_qp_num, peer->qp_num);
  EXPECT_EQ(attr.path_mtu, IBV_MTU_1024);
  EXPECT_EQ(attr.rq_psn, 100u);
  EXPECT_EQ(attr.timeout, 14);
  EXPECT_EQ(attr.retry_cnt, 7);
  EXPECT_EQ(attr.max_rd_atomic, 4);
  EXPECT_EQ(attr.max_dest_rd_atomic, 4);
  EXPECT_EQ(attr.ah_attr.grh.sgid_index, kGIDIndex);
  EXPECT_EQ(attr.ah_attr.is_global, 1);
  EXPECT_EQ(attr.qp_access_flags & IBV_ACCESS_REMOTE_READ,
            static_cast<unsigned>(IBV_ACCESS_REMOTE_READ));
}

TEST_F(QueuesTest, IllegalChangesAreInvalidAndChangeNothing) {
  ibv_qp* qp = make_qp();
  EXPECT_EQ(to_rts(qp), EINVAL) << "from Reset";
  EXPECT_EQ(qp->state, IBV_QPS_RESET);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_UNKNOWN;
  EXPECT_EQ(verbs.modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
  attr.qp_state = IBV_QPS_INIT;
  EXPECT_EQ(verbs.modify_qp(qp, &attr, IBV_QP_STATE), EINVAL) << "attributes are missing";
  EXPECT_EQ(verbs.modify_qp(qp, &attr, IBV_QP_STATE | 1 << 30), EINVAL) << "no such attribute";
  EXPECT_EQ(to_init(qp), 0);
}

TEST_F(QueuesTest, ARouteNeedsAGRHAndADestination) {
  const auto error_of = [&](auto&& change) {
    ibv_ah_attr route = loopback_route();
    change(route);
    errno = 0;
    ibv_ah* ah = verbs.create_ah(pd, &route);
    return ah == nullptr ? errno : verbs.destroy_ah(ah);
  };
  EXPECT_EQ(error_of([](ibv_ah_attr&) {}), 0);
  EXPECT_EQ(error_of([](ibv_ah_attr& route) { route.is_global = 0; }), EINVAL);
  EXPECT_EQ(error_of([](ibv_ah_attr& route) { route.port_num = 2; }), EINVAL);
  EXPECT_EQ(error_of([](ibv_ah_attr& route) { route.grh.sgid_index = 200; }), EINVAL);
  EXPECT_EQ(error_of([](ibv_ah_attr& route) { route.grh.dgid = {}; }), EINVAL);
  EXPECT_EQ(verbs.create_ah(pd, nullptr), nullptr);
}

TEST_F(QueuesTest, SRQLife) {
  ibv_srq_init_attr init{.srq_context = this, .attr = {.max_wr = 10, .max_sge = 2, .srq_limit = 0}};
  ibv_srq* srq = verbs.create_srq(pd, &init);
  ASSERT_NE(srq, nullptr);
  EXPECT_GE(init.attr.max_wr, 10u);
  EXPECT_GE(init.attr.max_sge, 2u);
  ibv_recv_wr wr = recv_wr(1, nullptr);  // no event while the queue holds as many as the limit
  ibv_recv_wr* bad = nullptr;
  for (int i = 0; i < 4; ++i) ASSERT_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
  ibv_srq_attr attr{.max_wr = 0, .max_sge = 0, .srq_limit = 4};
  EXPECT_EQ(verbs.modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
  EXPECT_EQ(verbs.modify_srq(srq, &attr, 1 << 7), EINVAL);
  ASSERT_EQ(verbs.query_srq(srq, &attr), 0);
  EXPECT_EQ(attr.srq_limit, 4u);

  ibv_qp_init_attr qp_init = qp_attributes(IBV_QPT_RC);
  qp_init.srq = srq;
  ibv_qp* qp = verbs.create_qp(pd, &qp_init);
  ASSERT_NE(qp, nullptr);
  EXPECT_EQ(verbs.destroy_srq(srq), EBUSY);
  EXPECT_EQ(verbs.destroy_qp(qp), 0);
  EXPECT_EQ(verbs.destroy_srq(srq), 0);
}

// TearDown() closes the context with all of this alive.
TEST_F(QueuesTest, ClosingTakesWhatIsLeft) {
  static std::array<char, 64> buffer;
  ibv_comp_channel* channel = verbs.create_comp_channel(context);
  ibv_cq* with_channel = make_cq(8, channel);
  EXPECT_EQ(verbs.destroy_comp_channel(channel), EBUSY);
  ASSERT_NE(with_channel, nullptr);
  register_all(buffer.data(), buffer.size());
  ASSERT_NE(ibv_alloc_mw(pd, IBV_MW_TYPE_2), nullptr);
  ibv_ah_attr route = loopback_route();
  ASSERT_NE(verbs.create_ah(pd, &route), nullptr);
  ibv_qp *a = make_qp(), *b = make_qp();
  connect(a, b);
}

}  // namespace
}  // namespace verbena::test
