// Invalid input is refused with the errno of the manual pages, and changes nothing: null pointers,
// calls that the ID's state does not allow, private data that does not fit.
#include <algorithm>
#include <cerrno>

#include "tests/rdmacm/rdmacm_fixture.h"

namespace verbena::test {
namespace {

bool invalid(int result) { return result == -1 && errno == EINVAL; }

using BadInputTest = RDMACMTest;

TEST_F(BadInputTest, NullPointersAreInvalid) {
  rdma_cm_id* id = make_id();
  sockaddr_in here = address(own_address(), 0);
  EXPECT_TRUE(invalid(rdma_create_id(channel, nullptr, nullptr, RDMA_PS_TCP)));
  EXPECT_TRUE(invalid(rdma_destroy_id(nullptr)));
  EXPECT_TRUE(invalid(rdma_migrate_id(nullptr, channel)));
  EXPECT_TRUE(invalid(rdma_bind_addr(nullptr, any(here))));
  EXPECT_TRUE(invalid(rdma_bind_addr(id, nullptr)));
  EXPECT_TRUE(invalid(rdma_listen(nullptr, 1)));
  EXPECT_TRUE(invalid(rdma_resolve_addr(nullptr, nullptr, any(here), 1)));
  EXPECT_TRUE(invalid(rdma_resolve_addr(id, nullptr, nullptr, 1)));
  EXPECT_TRUE(invalid(rdma_resolve_route(nullptr, 1)));
  EXPECT_TRUE(invalid(rdma_connect(nullptr, nullptr)));
  EXPECT_TRUE(invalid(rdma_accept(nullptr, nullptr)));
  EXPECT_TRUE(invalid(rdma_reject(nullptr, nullptr, 0)));
  EXPECT_TRUE(invalid(rdma_establish(nullptr)));
  EXPECT_TRUE(invalid(rdma_notify(nullptr, IBV_EVENT_COMM_EST)));
  EXPECT_TRUE(invalid(rdma_disconnect(nullptr)));
  EXPECT_TRUE(invalid(rdma_set_option(nullptr, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &here, 1)));
  EXPECT_TRUE(invalid(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, nullptr, 1)));
  EXPECT_TRUE(invalid(rdma_create_qp(nullptr, nullptr, nullptr)));
  EXPECT_TRUE(invalid(rdma_create_qp(id, nullptr, nullptr)));
  EXPECT_TRUE(invalid(rdma_create_srq(nullptr, nullptr, nullptr)));
  EXPECT_TRUE(invalid(rdma_init_qp_attr(id, nullptr, nullptr)));
  EXPECT_TRUE(invalid(rdma_get_request(nullptr, &id)));
  EXPECT_TRUE(invalid(rdma_create_ep(nullptr, nullptr, nullptr, nullptr)));
  EXPECT_TRUE(invalid(rdma_join_multicast(nullptr, any(here), nullptr)));
  EXPECT_TRUE(invalid(rdma_leave_multicast(nullptr, any(here))));
  EXPECT_TRUE(invalid(rdma_getaddrinfo(nullptr, "1", nullptr, nullptr)));
  rdma_destroy_event_channel(nullptr);
}

// --- each call in each state

enum class Call : std::uint8_t {
  kBind,
  kResolveAddress,
  kResolveRoute,
  kListen,
  kConnect,
  kAccept,
  kReject,
  kDisconnect,
  kNotify,
};

class CallsInStatesTest : public RDMACMTest {
 protected:
  int call(Call what, rdma_cm_id* id) {
    sockaddr_in here = address(own_address(), 0), there = address(own_address(), 7);
    switch (what) {
      case Call::kBind: return rdma_bind_addr(id, any(here));
      case Call::kResolveAddress: return rdma_resolve_addr(id, nullptr, any(there), 1000);
      case Call::kResolveRoute: return rdma_resolve_route(id, 1000);
      case Call::kListen: return rdma_listen(id, 1);
      case Call::kConnect: return rdma_connect(id, nullptr);
      case Call::kAccept: return rdma_accept(id, nullptr);
      case Call::kReject: return rdma_reject(id, nullptr, 0);
      case Call::kDisconnect: return rdma_disconnect(id);
      case Call::kNotify: return rdma_notify(id, IBV_EVENT_COMM_EST);
    }
    return 0;
  }
  // All but `allowed` are invalid, and leave the ID as it is.
  void only(rdma_cm_id* id, std::initializer_list<Call> allowed) {
    for (int i = 0; i <= static_cast<int>(Call::kNotify); ++i) {
      const Call what = static_cast<Call>(i);
      if (std::find(allowed.begin(), allowed.end(), what) != allowed.end()) continue;
      EXPECT_TRUE(invalid(call(what, id))) << "call " << i;
    }
    EXPECT_FALSE(has_event(0));
  }
};

TEST_F(CallsInStatesTest, New) {
  only(make_id(), {Call::kBind, Call::kResolveAddress, Call::kListen});
}

TEST_F(CallsInStatesTest, Bound) {
  rdma_cm_id* id = make_id();
  ASSERT_EQ(call(Call::kBind, id), 0);
  only(id, {Call::kResolveAddress, Call::kListen});
}

TEST_F(CallsInStatesTest, Listening) { only(make_listener(), {}); }

TEST_F(CallsInStatesTest, AddressResolved) {
  rdma_cm_id* id = make_id();
  ASSERT_EQ(call(Call::kResolveAddress, id), 0);
  expect_event(RDMA_CM_EVENT_ADDR_RESOLVED);
  only(id, {Call::kResolveRoute});
}

TEST_F(CallsInStatesTest, RouteResolved) {
  rdma_cm_id* id = make_resolved(7);
  make_qp(id);
  only(id, {Call::kConnect});
}

TEST_F(CallsInStatesTest, Requested) {
  rdma_cm_id* client = make_resolved(port_of(make_listener()));
  make_qp(client);
  ASSERT_EQ(rdma_connect(client, nullptr), 0);
  rdma_cm_id* server = expect_event(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  make_qp(server);
  only(server, {Call::kAccept, Call::kReject});
  only(client, {Call::kDisconnect, Call::kNotify});
}

TEST_F(CallsInStatesTest, RejectedOnceIsOver) {
  rdma_cm_id* client = make_resolved(port_of(make_listener()));
  make_qp(client);
  ASSERT_EQ(rdma_connect(client, nullptr), 0);
  rdma_cm_id* server = expect_event(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  make_qp(server);
  ASSERT_EQ(rdma_reject(server, nullptr, 0), 0);
  expect_event(RDMA_CM_EVENT_REJECTED);
  only(server, {});
  only(client, {Call::kDisconnect});
}

TEST_F(CallsInStatesTest, Connected) {
  const Pair pair = connect_pair();
  ASSERT_NE(pair.server, nullptr);
  for (rdma_cm_id* id : {pair.client, pair.server}) only(id, {Call::kDisconnect, Call::kNotify});
}

TEST_F(CallsInStatesTest, Disconnected) {
  const Pair pair = connect_pair();
  ASSERT_NE(pair.server, nullptr);
  ASSERT_EQ(rdma_disconnect(pair.client), 0);
  expect_event(RDMA_CM_EVENT_DISCONNECTED);
  only(pair.server, {Call::kDisconnect});
}

// --- private data

TEST_F(BadInputTest, PrivateDataIsAsLongAsItsMessageHasRoom) {
  const std::string data(255, 'd');
  struct Room {
    rdma_port_space space;
    ibv_qp_type type;
    std::uint8_t request, reply, refusal;
  };
  for (const Room& room : {Room{RDMA_PS_TCP, IBV_QPT_RC, 56, 196, 148},
                           Room{RDMA_PS_UDP, IBV_QPT_UD, 180, 136, 136}}) {
    rdma_cm_id* listener = make_listener(room.space);
    for (const bool accepts : {true, false}) {
      rdma_cm_id* client = make_resolved(port_of(listener), room.space);
      make_qp(client, room.type);
      std::string sent = data.substr(0, room.request + 1u);
      rdma_conn_param param = with_data(sent);
      EXPECT_TRUE(invalid(rdma_connect(client, &param)));
      --param.private_data_len;
      ASSERT_EQ(rdma_connect(client, &param), 0);
      const Event request = expect_event(RDMA_CM_EVENT_CONNECT_REQUEST);
      EXPECT_EQ(request.data, data.substr(0, room.request));
      make_qp(request.id, room.type);
      if (accepts) {
        sent = data.substr(0, room.reply + 1u);
        param = with_data(sent);
        EXPECT_TRUE(invalid(rdma_accept(request.id, &param)));
        --param.private_data_len;
        ASSERT_EQ(rdma_accept(request.id, &param), 0);
        for (int i = room.type == IBV_QPT_RC ? 2 : 1; i > 0; --i) {  // at both ends of a connection
          const Event answer = expect_event(RDMA_CM_EVENT_ESTABLISHED);
          const std::string expected = answer.id == client ? data.substr(0, room.reply) : "";
          EXPECT_EQ(answer.data, expected);
        }
      } else {
        EXPECT_TRUE(invalid(rdma_reject(request.id, data.data(), room.refusal + 1)));
        ASSERT_EQ(rdma_reject(request.id, data.data(), room.refusal), 0);
        EXPECT_THAT(next_event().type,
                    ::testing::AnyOf(RDMA_CM_EVENT_REJECTED, RDMA_CM_EVENT_UNREACHABLE));
      }
    }
  }
}

// --- ends in an unusual order

TEST_F(BadInputTest, AChannelMayGoWithEventsThatNobodyRead) {
  rdma_event_channel* own = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(own, &id, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in there = address(own_address(), 7);
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, any(there), 1000), 0);
  EXPECT_EQ(rdma_destroy_id(id), 0);
  rdma_destroy_event_channel(own);
}

// As Linux: the accept fails, and no event tells of it. event_states_test.cc has the other states.
TEST_F(BadInputTest, AClientThatGoesMidwayIsSeenByWhoAccepts) {
  rdma_cm_id* client = make_resolved(port_of(make_listener()));
  make_qp(client);
  ASSERT_EQ(rdma_connect(client, nullptr), 0);
  rdma_cm_id* server = expect_event(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  destroy(client);
  EXPECT_FALSE(has_event(100));
  make_qp(server);
  EXPECT_TRUE(invalid(rdma_accept(server, nullptr)));
}

TEST_F(BadInputTest, AListenerMayGoWhileItsRequestIsBeingAnswered) {
  rdma_cm_id* listener = make_listener();
  rdma_cm_id* client = make_resolved(port_of(listener));
  make_qp(client);
  ASSERT_EQ(rdma_connect(client, nullptr), 0);
  rdma_cm_id* server = expect_event(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  destroy(listener);
  make_qp(server);
  ASSERT_EQ(rdma_accept(server, nullptr), 0);
  for (int i = 0; i < 2; ++i) expect_event(RDMA_CM_EVENT_ESTABLISHED);
}

}  // namespace
}  // namespace verbena::test
