// The UDP port space: services are looked up (SIDR), and datagrams go to what was found.
#include <cerrno>

#include "tests/rdmacm/rdmacm_fixture.h"

namespace verbena::test {
namespace {

using DatagramTest = RDMACMTest;
using ::testing::StartsWith;

TEST_F(DatagramTest, AServiceTellsItsQP) {
  rdma_cm_id* listener = make_listener(RDMA_PS_UDP);
  rdma_cm_id* client = make_resolved(port_of(listener), RDMA_PS_UDP);
  make_qp(client, IBV_QPT_UD);
  const std::string question = "who?", answer = "me";
  rdma_conn_param param = with_data(question);
  ASSERT_EQ(rdma_connect(client, &param), 0);

  const Event request = expect_event(RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_THAT(request.data, StartsWith(question));
  EXPECT_EQ(request.data.size(), 180u);
  rdma_cm_id* server = request.id;
  EXPECT_EQ(server->qp_type, IBV_QPT_UD);
  make_qp(server, IBV_QPT_UD);
  param = with_data(answer);
  ASSERT_EQ(rdma_accept(server, &param), 0);

  const Event found = expect_event(RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(found.id, client);
  EXPECT_EQ(found.ud.qp_num, server->qp->qp_num);
  EXPECT_EQ(found.ud.qkey, static_cast<std::uint32_t>(RDMA_UDP_QKEY));
  EXPECT_THAT(found.data, StartsWith(answer));
  EXPECT_EQ(found.data.size(), 136u);
  ibv_ah_attr route = found.ud.ah_attr;
  ibv_ah* ah = ibv_create_ah(client->pd, &route);
  ASSERT_NE(ah, nullptr);

  char buffer[64] = {};
  ibv_mr* mr = rdma_reg_msgs(server, buffer, sizeof buffer);
  ASSERT_EQ(rdma_post_recv(server, nullptr, buffer, sizeof buffer, mr), 0);
  char text[] = "datagram";
  ASSERT_EQ(rdma_post_ud_send(client, nullptr, text, sizeof text, nullptr, IBV_SEND_INLINE, ah,
                              found.ud.qp_num),
            0);
  ibv_wc wc{};
  ASSERT_EQ(rdma_get_recv_comp(server, &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_STREQ(buffer + sizeof(ibv_grh), text);
  EXPECT_EQ(rdma_dereg_mr(mr), 0);
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

TEST_F(DatagramTest, ARejectedLookUpSaysSo) {
  rdma_cm_id* listener = make_listener(RDMA_PS_UDP);
  rdma_cm_id* client = make_resolved(port_of(listener), RDMA_PS_UDP);
  ASSERT_EQ(rdma_connect(client, nullptr), 0);
  rdma_cm_id* server = expect_event(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  ASSERT_EQ(rdma_reject(server, nullptr, 0), 0);
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_UNREACHABLE).status, 2) << "rejected by the service";
}

TEST_F(DatagramTest, NobodyListensSaysSo) {
  rdma_cm_id* client = make_resolved(1, RDMA_PS_UDP);
  ASSERT_EQ(rdma_connect(client, nullptr), 0);
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_UNREACHABLE).status, 1) << "no such service";
}

TEST_F(DatagramTest, TooMuchPrivateDataIsInvalid) {
  rdma_cm_id* client = make_resolved(1, RDMA_PS_UDP);
  const std::string long_data(181, 'x');
  rdma_conn_param param = with_data(long_data);
  EXPECT_EQ(rdma_connect(client, &param), -1);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace verbena::test
