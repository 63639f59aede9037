// Attributes of create, modify and query calls as the manual pages have them: ignored, computed or
// refused; and the public fields of the objects, which programs may read.
#include <cerrno>
#include <cstring>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

struct AttributesTest : VerbsTest {
  ibv_srq* make_srq(std::uint32_t limit) {
    ibv_srq_init_attr init{.srq_context = this,
                           .attr = {.max_wr = 8, .max_sge = 1, .srq_limit = limit}};
    return verbs.create_srq(pd, &init);
  }
  ibv_srq_attr attributes_of(ibv_srq* srq) {
    ibv_srq_attr attr{};
    EXPECT_EQ(verbs.query_srq(srq, &attr), 0);
    return attr;
  }
  ibv_qp_attr attributes_of(ibv_qp* qp) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(verbs.query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
    return attr;
  }
  int modify(ibv_qp* qp, ibv_qp_state state) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    return verbs.modify_qp(qp, &attr, IBV_QP_STATE);
  }
};

// ibv_create_srq(3): "irrelevant".
TEST_F(AttributesTest, CreatingAnSRQIgnoresTheLimit) {
  for (const std::uint32_t limit : {4u, 0xa5a5a5a5u}) {
    ibv_srq* srq = make_srq(limit);
    ASSERT_NE(srq, nullptr);
    EXPECT_EQ(attributes_of(srq).srq_limit, 0u);
    EXPECT_EQ(verbs.destroy_srq(srq), 0);
  }
  ibv_srq_init_attr_ex extended{};
  extended.attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0xa5a5a5a5};
  extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  extended.srq_type = IBV_SRQT_BASIC;
  extended.pd = pd;
  ibv_srq* srq = verbs_get_ctx(context)->create_srq_ex(context, &extended);
  ASSERT_NE(srq, nullptr);
  EXPECT_EQ(attributes_of(srq).srq_limit, 0u);
}

// ibv_modify_srq(3): "If any of the modify attributes is invalid, none will be modified."
TEST_F(AttributesTest, AnSRQIsModifiedWholeOrNotAtAll) {
  ibv_srq* srq = make_srq(0);
  ibv_srq_attr attr{.max_wr = 20, .max_sge = 99, .srq_limit = 21};
  EXPECT_EQ(verbs.modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
  EXPECT_EQ(attributes_of(srq).max_wr, 8u);
  attr.srq_limit = 20;
  EXPECT_EQ(verbs.modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0) << "fits the new size";
  EXPECT_EQ(attributes_of(srq).max_wr, 20u);
  EXPECT_EQ(attributes_of(srq).max_sge, 1u) << "irrelevant";
  EXPECT_EQ(verbs.modify_srq(srq, &attr, 0), 0);
}

// ibv_create_qp(3): the sizes of the receive queue are ignored with an SRQ, which only RC and UD
// may have.
TEST_F(AttributesTest, AQPWithAnSRQ) {
  ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
  attr.srq = make_srq(0);
  attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0xa5a5a5a5;
  EXPECT_NE(verbs.create_qp(pd, &attr), nullptr);
  attr = qp_attributes(IBV_QPT_UC);
  attr.srq = make_srq(0);
  errno = 0;
  EXPECT_EQ(verbs.create_qp(pd, &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// ibv_query_qp(3): "valid only if qp_state is SQD".
TEST_F(AttributesTest, DrainingIsComputed) {
  ibv_qp *qp = make_qp(), *peer = make_qp();
  connect(qp, peer);
  EXPECT_EQ(attributes_of(qp).sq_draining, 0);
  ASSERT_EQ(modify(qp, IBV_QPS_SQD), 0);
  EXPECT_EQ(attributes_of(qp).sq_draining, 0) << "nothing is outstanding";
  ASSERT_EQ(modify(qp, IBV_QPS_RTS), 0);
  ASSERT_EQ(post(qp, send_wr(1, IBV_WR_SEND, nullptr)), 0);  // the peer has no receive
  ASSERT_EQ(modify(qp, IBV_QPS_SQD), 0);
  EXPECT_EQ(attributes_of(qp).qp_state, IBV_QPS_SQD);
  EXPECT_EQ(attributes_of(qp).sq_draining, 1);
  ASSERT_EQ(post(peer, recv_wr(2, nullptr)), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(attributes_of(qp).sq_draining, 0);
}

TEST_F(AttributesTest, TheMaskOfAModificationMayBeZero) {
  ibv_qp* qp = make_qp();
  ibv_qp_attr garbage;
  std::memset(&garbage, 0xa5, sizeof garbage);
  EXPECT_EQ(verbs.modify_qp(qp, &garbage, 0), 0);
  EXPECT_EQ(attributes_of(qp).qp_state, IBV_QPS_RESET);
}

TEST_F(AttributesTest, AcknowledgedEventsAreCounted) {
  ibv_comp_channel* channel = verbs.create_comp_channel(context);
  ASSERT_NE(channel, nullptr);
  EXPECT_EQ(channel->refcnt, 0);
  ibv_cq* completions = make_cq(8, channel);
  EXPECT_EQ(channel->refcnt, 1);
  ibv_qp_init_attr attr = qp_attributes(IBV_QPT_RC);
  attr.recv_cq = completions;
  attr.srq = make_srq(0);
  ibv_qp *qp = verbs.create_qp(pd, &attr), *peer = make_qp();
  connect(peer, qp);
  ibv_recv_wr wr = recv_wr(1, nullptr);
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_srq_recv(attr.srq, &wr, &bad), 0);
  ASSERT_EQ(ibv_req_notify_cq(completions, 0), 0);
  ASSERT_EQ(post(peer, send_wr(2, IBV_WR_SEND, nullptr)), 0);

  ibv_cq* about = nullptr;
  void* cq_context = nullptr;
  ASSERT_EQ(verbs.get_cq_event(channel, &about, &cq_context), 0);
  EXPECT_EQ(completions->comp_events_completed, 0u);
  verbs.ack_cq_events(about, 1);
  EXPECT_EQ(completions->comp_events_completed, 1u);
  EXPECT_EQ(completions->async_events_completed, 0u);

  ibv_srq_attr limit{.max_wr = 0, .max_sge = 0, .srq_limit = 4};
  ASSERT_EQ(verbs.modify_srq(attr.srq, &limit, IBV_SRQ_LIMIT), 0);  // fewer are left: at once
  ASSERT_EQ(modify(qp, IBV_QPS_ERR), 0);                            // with an SRQ: the last WQE
  ibv_async_event event{};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(verbs.get_async_event(context, &event), 0);
    verbs.ack_async_event(&event);
  }
  EXPECT_EQ(attr.srq->events_completed, 1u);
  EXPECT_EQ(qp->events_completed, 1u);

  EXPECT_EQ(verbs.destroy_qp(qp), 0);
  EXPECT_EQ(verbs.destroy_cq(completions), 0);
  EXPECT_EQ(channel->refcnt, 0);
}

}  // namespace
}  // namespace verbena::test
