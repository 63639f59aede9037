// XRC: domains, SRQs with numbers, initiator and target QPs. ibv_open_xrcd(3),
// ibv_create_srq_ex(3), ibv_get_srq_num(3), ibv_open_qp(3).
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "tests/abi/verbs_fixture.h"

namespace verbena::test {
namespace {

class XRCTest : public VerbsTest {
 protected:
  void SetUp() override {
    VerbsTest::SetUp();
    mr = register_all(memory, sizeof memory);
    xrcd = open_domain(-1, O_CREAT);
    ASSERT_NE(xrcd, nullptr);
    srq = make_srq(xrcd);
    ASSERT_NE(srq, nullptr);
  }
  ibv_xrcd* open_domain(int fd, int oflags) {
    ibv_xrcd_init_attr attr{
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = oflags};
    return ibv_open_xrcd(context, &attr);
  }
  ibv_srq_init_attr_ex srq_attributes(ibv_xrcd* domain) const {
    ibv_srq_init_attr_ex attr{};
    attr.attr = {.max_wr = 8, .max_sge = 1, .srq_limit = 0};
    attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ;
    attr.srq_type = IBV_SRQT_XRC;
    attr.pd = pd;
    attr.xrcd = domain;
    attr.cq = cq;
    return attr;
  }
  ibv_srq* make_srq(ibv_xrcd* domain) {
    ibv_srq_init_attr_ex attr = srq_attributes(domain);
    return call_create_srq(&attr);
  }
  // The inline ibv_create_srq_ex() would bind to the system's library.
  ibv_srq* call_create_srq(ibv_srq_init_attr_ex* attr) {
    return verbs_get_ctx(context)->create_srq_ex(context, attr);
  }
  ibv_qp* make_target(ibv_xrcd* domain) {
    ibv_qp_init_attr_ex attr{};
    attr.qp_type = IBV_QPT_XRC_RECV;
    attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    attr.xrcd = domain;
    return verbs_get_ctx(context)->create_qp_ex(context, &attr);
  }
  ibv_qp* make_initiator() {
    ibv_qp_init_attr attr = qp_attributes(IBV_QPT_XRC_SEND);
    attr.recv_cq = nullptr;
    return verbs.create_qp(pd, &attr);
  }
  std::uint32_t number_of(ibv_srq* of) {
    std::uint32_t number = 0;
    EXPECT_EQ(ibv_get_srq_num(of, &number), 0);
    return number;
  }
  void post_receive(std::uint64_t wr_id) {
    ibv_sge sge = sge_of(mr, 4096, 1024);
    ibv_recv_wr wr = recv_wr(wr_id, &sge), *bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
  }
  ibv_qp* open(std::uint32_t qp_num, ibv_xrcd* domain) {
    ibv_qp_open_attr attr{};
    attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    attr.qp_num = qp_num;
    attr.xrcd = domain;
    attr.qp_type = IBV_QPT_XRC_RECV;
    return ibv_open_qp(context, &attr);
  }

  alignas(8) char memory[8192] = {};
  ibv_mr* mr = nullptr;
  ibv_xrcd* xrcd = nullptr;
  ibv_srq* srq = nullptr;
};

TEST_F(XRCTest, AMessageGoesToTheSRQItNames) {
  ibv_qp *initiator = make_initiator(), *target = make_target(xrcd);
  ASSERT_NE(initiator, nullptr);
  ASSERT_NE(target, nullptr);
  connect(initiator, target);
  post_receive(5);
  std::snprintf(memory, sizeof memory, "to an SRQ");
  ibv_sge sge = sge_of(mr, 0, 64);
  ibv_send_wr wr = send_wr(6, IBV_WR_SEND, &sge);
  wr.qp_type.xrc.remote_srqn = number_of(srq);
  ASSERT_EQ(post(initiator, wr), 0);
  for (int i = 0; i < 2; ++i) {
    const ibv_wc wc = wait_for_completion();
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.qp_num, wc.wr_id == 5 ? target->qp_num : initiator->qp_num);
  }
  EXPECT_STREQ(memory + 4096, "to an SRQ");
}

TEST_F(XRCTest, BuiltRequestsNameAnSRQToo) {
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = IBV_QPT_XRC_SEND;
  attr.send_cq = cq;
  attr.cap.max_send_wr = attr.cap.max_send_sge = 1;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = pd;
  attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
  ibv_qp* initiator = verbs_get_ctx(context)->create_qp_ex(context, &attr);
  ASSERT_NE(initiator, nullptr);
  connect(initiator, make_target(xrcd));
  ibv_qp_ex* qp = verbs.qp_to_qp_ex(initiator);
  memory[0] = 77;
  ibv_wr_start(qp);
  qp->wr_id = 3;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_write(qp, mr->rkey, reinterpret_cast<std::uint64_t>(memory) + 4096);
  ibv_wr_set_xrc_srqn(qp, number_of(srq));
  ibv_wr_set_sge(qp, mr->lkey, reinterpret_cast<std::uint64_t>(memory), 8);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_SUCCESS);
  EXPECT_EQ(memory[4096], 77);
}

TEST_F(XRCTest, AnUnknownSRQIsARemoteInvalidRequest) {
  ibv_qp *initiator = make_initiator(), *target = make_target(xrcd);
  connect(initiator, target);
  ibv_sge sge = sge_of(mr, 0, 64);
  ibv_send_wr wr = send_wr(6, IBV_WR_SEND, &sge);
  wr.qp_type.xrc.remote_srqn = 0xfffff0;
  ASSERT_EQ(post(initiator, wr), 0);
  EXPECT_EQ(wait_for_completion().status, IBV_WC_REM_INV_REQ_ERR);
  ibv_async_event event{};
  ASSERT_EQ(verbs.get_async_event(context, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_REQ_ERR);
  EXPECT_EQ(event.element.qp, target);
  verbs.ack_async_event(&event);
  wr.qp_type.xrc.remote_srqn = 1u << 24;
  EXPECT_EQ(post(make_initiator(), wr), EINVAL);
}

TEST_F(XRCTest, ATargetMayBeOpenedMoreThanOnce) {
  ibv_qp* target = make_target(xrcd);
  ibv_qp* again = open(target->qp_num, xrcd);
  ASSERT_NE(again, nullptr);
  EXPECT_NE(again, target);
  EXPECT_EQ(again->qp_num, target->qp_num);
  ASSERT_EQ(verbs.destroy_qp(target), 0);
  EXPECT_EQ(to_init(again), 0) << "the QP is still there";
  EXPECT_EQ(verbs.destroy_qp(again), 0);
  EXPECT_EQ(open(1u << 14 | 5, xrcd), nullptr);
  EXPECT_TRUE(errno == EOPNOTSUPP || errno == EINVAL);
}

TEST_F(XRCTest, OnlyTargetsOfTheDomainCanBeOpened) {
  ibv_qp* initiator = make_initiator();
  EXPECT_EQ(open(initiator->qp_num, xrcd), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_xrcd* other = open_domain(-1, O_CREAT);
  EXPECT_EQ(open(make_target(xrcd)->qp_num, other), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(XRCTest, DomainsOfOneFileAreOne) {
  const int fd = ::open("/tmp", O_TMPFILE | O_RDWR, 0600);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(open_domain(fd, 0), nullptr);
  EXPECT_EQ(errno, EAGAIN);
  ibv_xrcd* first = open_domain(fd, O_CREAT | O_EXCL);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(open_domain(fd, O_CREAT | O_EXCL), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_xrcd* second = open_domain(fd, 0);
  ASSERT_NE(second, nullptr);
  ibv_qp* target = make_target(first);
  ibv_qp* opened = open(target->qp_num, second);
  ASSERT_NE(opened, nullptr);
  ASSERT_EQ(verbs.destroy_qp(target), 0);
  EXPECT_EQ(ibv_close_xrcd(first), 0);
  EXPECT_EQ(ibv_close_xrcd(second), EBUSY);
  ASSERT_EQ(verbs.destroy_qp(opened), 0);
  EXPECT_EQ(ibv_close_xrcd(second), 0);
  EXPECT_EQ(open_domain(fd, 0), nullptr) << "it went with its last user";
  ::close(fd);
  EXPECT_EQ(open_domain(fd, O_CREAT), nullptr);
  EXPECT_EQ(errno, EBADF);
}

TEST_F(XRCTest, ADomainIsBusyWhileItIsUsed) {
  EXPECT_EQ(ibv_close_xrcd(xrcd), EBUSY);
  ASSERT_EQ(verbs.destroy_srq(srq), 0);
  ibv_qp* target = make_target(xrcd);
  EXPECT_EQ(ibv_close_xrcd(xrcd), EBUSY);
  ASSERT_EQ(verbs.destroy_qp(target), 0);
  EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
}

TEST_F(XRCTest, WhatIsMissingOrMisplacedIsRefused) {
  ibv_srq_init_attr_ex attr = srq_attributes(xrcd);
  attr.comp_mask &= ~IBV_SRQ_INIT_ATTR_CQ;
  EXPECT_EQ(call_create_srq(&attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  attr = srq_attributes(xrcd);
  attr.xrcd = nullptr;
  EXPECT_EQ(call_create_srq(&attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  attr.srq_type = IBV_SRQT_TM;
  EXPECT_EQ(call_create_srq(&attr), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_srq_init_attr basic{.srq_context = nullptr,
                          .attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0}};
  std::uint32_t number = 0;
  EXPECT_EQ(ibv_get_srq_num(verbs.create_srq(pd, &basic), &number), EINVAL);
  EXPECT_EQ(make_target(nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_qp* target = make_target(xrcd);
  EXPECT_EQ(post(target, send_wr(1, IBV_WR_SEND, nullptr)), EINVAL);
  EXPECT_EQ(post(target, recv_wr(1, nullptr)), EINVAL);
  EXPECT_EQ(post(make_initiator(), recv_wr(1, nullptr)), EINVAL);
}

TEST_F(XRCTest, TheDeviceSaysThatItHasXRC) {
  ibv_device_attr attr{};
  ASSERT_EQ(verbs.query_device(context, &attr), 0);
  EXPECT_NE(attr.device_cap_flags & IBV_DEVICE_XRC, 0u);
}

TEST_F(XRCTest, ClosingTheContextTakesAllWithIt) {
  connect(make_initiator(), make_target(xrcd));
  (void)open(make_target(xrcd)->qp_num, xrcd);
}

}  // namespace
}  // namespace verbena::test
