// Synchronous IDs: rdma_create_ep, rdma_get_request; SRQs and CQs of IDs.
#include <cerrno>
#include <thread>

#include "tests/rdmacm/rdmacm_fixture.h"

namespace verbena::test {
namespace {

class EndpointTest : public RDMACMTest {
 protected:
  static ibv_qp_init_attr small_qp() {
    ibv_qp_init_attr attr{};
    attr.qp_type = IBV_QPT_RC;
    attr.cap.max_send_wr = attr.cap.max_recv_wr = 4;
    attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    attr.sq_sig_all = 1;
    return attr;
  }
  static rdma_cm_id* make_endpoint(const std::string& node, const std::string& port, int flags) {
    rdma_addrinfo hints{}, *found = nullptr;
    hints.ai_flags = flags;
    hints.ai_port_space = RDMA_PS_TCP;
    EXPECT_EQ(rdma_getaddrinfo(node.c_str(), port.c_str(), &hints, &found), 0);
    ibv_qp_init_attr attr = small_qp();
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(rdma_create_ep(&id, found, nullptr, &attr), 0);
    rdma_freeaddrinfo(found);
    return id;
  }
};

TEST_F(EndpointTest, ServerAndClientInAFewCalls) {
  rdma_cm_id* listener = make_endpoint(own_address(), "0", RAI_PASSIVE);
  ASSERT_NE(listener, nullptr);
  ASSERT_EQ(rdma_listen(listener, 1), 0);
  std::thread server([listener] {
    rdma_cm_id* id = nullptr;
    ASSERT_EQ(rdma_get_request(listener, &id), 0);
    ASSERT_NE(id->qp, nullptr) << "as the listener was told to make";
    EXPECT_NE(id->recv_cq_channel, nullptr);
    EXPECT_EQ(id->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_EQ(rdma_accept(id, nullptr), 0) << "waits until it is established";
    EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_EQ(rdma_disconnect(id), 0);
    rdma_destroy_ep(id);
  });
  rdma_cm_id* client = make_endpoint(own_address(), std::to_string(port_of(listener)), 0);
  ASSERT_NE(client, nullptr);
  ASSERT_EQ(rdma_connect(client, nullptr), 0);
  EXPECT_EQ(client->event->event, RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_EQ(rdma_disconnect(client), 0);
  server.join();
  rdma_destroy_ep(client);
  rdma_destroy_ep(listener);
}

TEST_F(EndpointTest, NobodyListensIsConnectionRefused) {
  rdma_cm_id* client = make_endpoint(own_address(), "1", 0);
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(rdma_connect(client, nullptr), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  rdma_destroy_ep(client);
}

TEST_F(EndpointTest, RequestsAreForSynchronousListeners) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_get_request(make_listener(), &id), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(EndpointTest, QPsTakeTheSRQOfTheirId) {
  rdma_cm_id* id = make_resolved(7);
  ibv_srq_init_attr attr{};
  attr.attr.max_wr = 8;
  attr.attr.max_sge = 1;
  ASSERT_EQ(rdma_create_srq(id, nullptr, &attr), 0);
  ASSERT_NE(id->srq, nullptr);
  EXPECT_EQ(rdma_create_srq(id, nullptr, &attr), -1);
  make_qp(id);
  EXPECT_EQ(id->qp->srq, id->srq);
  rdma_destroy_qp(id);
  rdma_destroy_srq(id);
  EXPECT_EQ(id->srq, nullptr);
}

TEST_F(EndpointTest, CQsOfTheProgramStayTheProgramsOwn) {
  rdma_cm_id* id = make_resolved(7);
  ibv_cq* cq = ibv_create_cq(id->verbs, 8, nullptr, nullptr, 0);
  ibv_qp_init_attr attr = small_qp();
  attr.send_cq = attr.recv_cq = cq;
  ASSERT_EQ(rdma_create_qp(id, nullptr, &attr), 0);
  EXPECT_EQ(id->qp->send_cq, cq);
  EXPECT_EQ(rdma_create_qp(id, nullptr, &attr), -1) << "one only";
  EXPECT_EQ(errno, EINVAL);
  rdma_destroy_qp(id);
  EXPECT_EQ(ibv_destroy_cq(cq), 0) << "was not destroyed with the QP";
}

}  // namespace
}  // namespace verbena::test
