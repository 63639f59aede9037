// Connections: made, used, refused and ended, asynchronously.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/rdmacm/rdmacm_fixture.h"

namespace verbena::test {
namespace {

using ConnectionTest = RDMACMTest;
using ::testing::StartsWith;

ibv_qp_state state_of(const rdma_cm_id* id) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init), 0);
  return attr.qp_state;
}

void send_text(rdma_cm_id* from, rdma_cm_id* to, const char* text) {
  char buffer[64] = {};
  ibv_mr* mr = rdma_reg_msgs(to, buffer, sizeof buffer);
  ASSERT_NE(mr, nullptr);
  ASSERT_EQ(rdma_post_recv(to, nullptr, buffer, sizeof buffer, mr), 0);
  ASSERT_EQ(rdma_post_send(from, nullptr, const_cast<char*>(text), std::strlen(text) + 1, nullptr,
                           IBV_SEND_INLINE),
            0);
  ibv_wc wc{};
  ASSERT_EQ(rdma_get_recv_comp(to, &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_STREQ(buffer, text);
  ASSERT_EQ(rdma_get_send_comp(from, &wc), 1);
  EXPECT_EQ(rdma_dereg_mr(mr), 0);
}

TEST_F(ConnectionTest, CarriesDataBothWays) {
  const Pair pair = connect_pair();
  ASSERT_NE(pair.server, nullptr);
  send_text(pair.client, pair.server, "there");
  send_text(pair.server, pair.client, "and back");
}

TEST_F(ConnectionTest, PrivateDataAndDepthsReachTheOtherSide) {
  rdma_cm_id* listener = make_listener();
  rdma_cm_id* client = make_resolved(port_of(listener));
  make_qp(client);
  EXPECT_EQ(state_of(client), IBV_QPS_INIT);
  EXPECT_EQ(client->recv_cq->cq_context, client);
  EXPECT_EQ(client->send_cq->cq_context, client);
  const std::string hello = "hello", welcome = "welcome";
  rdma_conn_param param = with_data(hello);
  param.responder_resources = 3;
  param.initiator_depth = 5;
  ASSERT_EQ(rdma_connect(client, &param), 0);

  const Event request = expect_event(RDMA_CM_EVENT_CONNECT_REQUEST);
  rdma_cm_id* server = request.id;
  EXPECT_EQ(request.listener, listener);
  EXPECT_EQ(server->context, listener->context);
  EXPECT_THAT(request.data, StartsWith(hello));
  EXPECT_EQ(request.data.size(), 56u) << "what the IP header leaves, padded";
  EXPECT_EQ(request.conn.responder_resources, 5);
  EXPECT_EQ(request.conn.initiator_depth, 3);
  EXPECT_EQ(request.conn.qp_num, client->qp->qp_num);
  EXPECT_EQ(rdma_get_src_port(server), rdma_get_src_port(listener));
  EXPECT_EQ(rdma_get_dst_port(server), rdma_get_src_port(client));

  make_qp(server);
  param = with_data(welcome);
  ASSERT_EQ(rdma_accept(server, &param), 0);
  for (int i = 0; i < 2; ++i) {
    const Event event = expect_event(RDMA_CM_EVENT_ESTABLISHED);
    EXPECT_EQ(event.status, 0);
    if (event.id != client) continue;
    EXPECT_THAT(event.data, StartsWith(welcome));
    EXPECT_EQ(event.data.size(), 196u);
    EXPECT_EQ(event.conn.qp_num, server->qp->qp_num);
  }
  EXPECT_EQ(state_of(client), IBV_QPS_RTS);
  EXPECT_EQ(state_of(server), IBV_QPS_RTS);
}

TEST_F(ConnectionTest, DisconnectingReachesBoth) {
  const Pair pair = connect_pair();
  ASSERT_EQ(rdma_disconnect(pair.client), 0);
  EXPECT_EQ(state_of(pair.client), IBV_QPS_ERR);
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_DISCONNECTED).id, pair.server);
  ASSERT_EQ(rdma_disconnect(pair.server), 0);
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_DISCONNECTED).id, pair.client);
  EXPECT_EQ(rdma_disconnect(pair.client), 0) << "once more does no harm";
  for (int i = 0; i < 2; ++i) expect_event(RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

TEST_F(ConnectionTest, DestroyingAnIdDisconnects) {
  const Pair pair = connect_pair();
  destroy(pair.server);
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_DISCONNECTED).id, pair.client);
}

TEST_F(ConnectionTest, RejectionTellsWhy) {
  rdma_cm_id* listener = make_listener();
  rdma_cm_id* client = make_resolved(port_of(listener));
  make_qp(client);
  ASSERT_EQ(rdma_connect(client, nullptr), 0);
  rdma_cm_id* server = expect_event(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  ASSERT_EQ(rdma_reject(server, "no", 3), 0);
  const Event event = expect_event(RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(event.id, client);
  EXPECT_EQ(event.status, 28) << "consumer reject";
  EXPECT_STREQ(event.data.c_str(), "no");
  EXPECT_EQ(event.data.size(), 148u);
  EXPECT_EQ(state_of(client), IBV_QPS_ERR);
  EXPECT_EQ(rdma_reject(client, nullptr, 0), -1);
  EXPECT_EQ(errno, EINVAL) << "not a request";
}

TEST_F(ConnectionTest, NobodyListensIsRejected) {
  rdma_cm_id* client = make_resolved(1);
  make_qp(client);
  ASSERT_EQ(rdma_connect(client, nullptr), 0);
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_REJECTED).status, 8) << "invalid service ID";
}

TEST_F(ConnectionTest, AListenerThatGoesRejectsWhatItDidNotRead) {
  rdma_cm_id* listener = make_listener();
  rdma_cm_id* client = make_resolved(port_of(listener));
  make_qp(client);
  ASSERT_EQ(rdma_connect(client, nullptr), 0);
  ASSERT_TRUE(has_event(10'000));
  destroy(listener);
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_REJECTED).id, client);
}

TEST_F(ConnectionTest, BadParametersAreInvalid) {
  rdma_cm_id* client = make_resolved(7);
  EXPECT_EQ(rdma_connect(client, nullptr), -1) << "neither a QP nor the number of one";
  EXPECT_EQ(errno, EINVAL);
  make_qp(client);
  const std::string long_data(57, 'x');
  rdma_conn_param param = with_data(long_data);
  EXPECT_EQ(rdma_connect(client, &param), -1);
  EXPECT_EQ(errno, EINVAL);
  param = with_data("");
  param.initiator_depth = 200;
  EXPECT_EQ(rdma_connect(client, &param), -1) << "more than the device has";
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(ConnectionTest, CallsOutOfOrderAreInvalid) {
  rdma_cm_id* id = make_id();
  const auto invalid = [](int result) { return result == -1 && errno == EINVAL; };
  EXPECT_TRUE(invalid(rdma_resolve_route(id, 1)));
  EXPECT_TRUE(invalid(rdma_connect(id, nullptr)));
  EXPECT_TRUE(invalid(rdma_accept(id, nullptr)));
  EXPECT_TRUE(invalid(rdma_disconnect(id)));
  EXPECT_TRUE(invalid(rdma_establish(id)));
  EXPECT_TRUE(invalid(rdma_notify(id, IBV_EVENT_COMM_EST)));
  ibv_qp_attr attr{};
  int mask = 0;
  attr.qp_state = IBV_QPS_INIT;
  EXPECT_TRUE(invalid(rdma_init_qp_attr(id, &attr, &mask))) << "no device yet";
  ibv_qp_init_attr init{};
  EXPECT_TRUE(invalid(rdma_create_qp(id, nullptr, &init)));
  EXPECT_TRUE(invalid(rdma_listen(make_resolved(7), 1)));
}

// As UCX does: the program has its QPs itself.
TEST_F(ConnectionTest, ProgramsMayBringTheirOwnQPs) {
  rdma_cm_id* listener = make_listener();
  rdma_cm_id* client = make_resolved(port_of(listener));
  rdma_conn_param param = with_data("");
  param.qp_num = 0x123;
  ASSERT_EQ(rdma_connect(client, &param), 0);
  const Event request = expect_event(RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(request.conn.qp_num, 0x123u);
  param.qp_num = 0x456;
  ASSERT_EQ(rdma_accept(request.id, &param), 0);
  const Event response = expect_event(RDMA_CM_EVENT_CONNECT_RESPONSE);
  EXPECT_EQ(response.id, client);
  EXPECT_EQ(response.conn.qp_num, 0x456u);
  for (const auto& [id, peer] : {std::pair{client, 0x456u}, std::pair{request.id, 0x123u}}) {
    ibv_qp_attr attr{};
    int mask = 0;
    attr.qp_state = IBV_QPS_RTR;
    ASSERT_EQ(rdma_init_qp_attr(id, &attr, &mask), 0);
    EXPECT_EQ(attr.dest_qp_num, peer);
    EXPECT_EQ(attr.ah_attr.is_global, 1);
    EXPECT_NE(mask & IBV_QP_MAX_DEST_RD_ATOMIC, 0);
    attr.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(rdma_init_qp_attr(id, &attr, &mask), 0);
    EXPECT_EQ(attr.retry_cnt, 7);
    EXPECT_NE(mask & IBV_QP_TIMEOUT, 0);
  }
  ASSERT_EQ(rdma_establish(client), 0);
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_ESTABLISHED).id, request.id);
}

// As librpma 1.3 does, where the device has FLUSH: it relies on the rights that rdma_cm gives.
TEST_F(ConnectionTest, ThePeerMayFlush) {
  constexpr unsigned kFlushGlobal = 1u << 8, kFlushPersistent = 1u << 9;  // IBV_ACCESS_FLUSH_*
  const Pair pair = connect_pair();
  for (rdma_cm_id* id : {pair.client, pair.server}) {
    ibv_qp_attr attr{};
    int mask = 0;
    attr.qp_state = IBV_QPS_INIT;
    ASSERT_EQ(rdma_init_qp_attr(id, &attr, &mask), 0);
    EXPECT_EQ(attr.qp_access_flags, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                        IBV_ACCESS_REMOTE_ATOMIC | kFlushGlobal | kFlushPersistent);
  }
}

TEST_F(ConnectionTest, NotifyingEstablishesWhereTheAnswerIsLate) {
  rdma_cm_id* listener = make_listener();
  rdma_cm_id* client = make_resolved(port_of(listener));
  rdma_conn_param param = with_data("");
  param.qp_num = 0x124;
  ASSERT_EQ(rdma_connect(client, &param), 0);
  rdma_cm_id* server = expect_event(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  param.qp_num = 0x457;
  ASSERT_EQ(rdma_accept(server, &param), 0);
  expect_event(RDMA_CM_EVENT_CONNECT_RESPONSE);  // and no rdma_establish()
  EXPECT_EQ(rdma_notify(server, IBV_EVENT_COMM_EST), 0);
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_ESTABLISHED).id, server);
  EXPECT_EQ(rdma_notify(server, IBV_EVENT_SQ_DRAINED), -1);
  EXPECT_EQ(rdma_notify(server, IBV_EVENT_COMM_EST), 0) << "known already";
  EXPECT_FALSE(has_event(0));
}

TEST_F(ConnectionTest, DestroyingWaitsForTheAcknowledgement) {
  rdma_cm_id* client = make_resolved(1);
  make_qp(client);
  ASSERT_EQ(rdma_connect(client, nullptr), 0);
  ASSERT_TRUE(has_event(10'000));
  rdma_cm_event* event = nullptr;
  ASSERT_EQ(rdma_get_cm_event(channel, &event), 0);
  std::atomic<bool> acknowledged = false;
  std::thread destroyer([&] {
    destroy(client);
    EXPECT_TRUE(acknowledged);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  acknowledged = true;
  EXPECT_EQ(rdma_ack_cm_event(event), 0);
  destroyer.join();
}

TEST_F(ConnectionTest, ManyAtOnce) {
  constexpr int kMany = 100;
  rdma_cm_id* listener = make_id();
  sockaddr_in here = address(own_address(), 0);
  ASSERT_EQ(rdma_bind_addr(listener, any(here)), 0);
  ASSERT_EQ(rdma_listen(listener, kMany), 0);
  std::vector<rdma_cm_id*> clients;
  for (int i = 0; i < kMany; ++i) clients.push_back(make_resolved(port_of(listener)));
  for (rdma_cm_id* client : clients) {
    make_qp(client);
    ASSERT_EQ(rdma_connect(client, nullptr), 0);
  }
  for (int requests = 0, established = 0; established < 2 * kMany;) {
    const Event event = next_event();
    ASSERT_NE(event.type, -1) << requests << " requests, " << established << " established";
    if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      ++requests;
      make_qp(event.id);
      ASSERT_EQ(rdma_accept(event.id, nullptr), 0);
    } else {
      ASSERT_EQ(event.type, RDMA_CM_EVENT_ESTABLISHED) << event.status;
      ++established;
    }
  }
}

}  // namespace
}  // namespace verbena::test
