// Which event reaches a program in which state of an ID, as Linux has it: the kernel queues no
// event for the ID of a request until rdma_accept(3) has succeeded (ucma.c, ucma_event_handler),
// and after DISCONNECTED none but TIMEWAIT_EXIT (cma.c, cma_ib_handler).
#include <cerrno>
#include <ostream>

#include "tests/rdmacm/rdmacm_fixture.h"

namespace verbena::test {
namespace {

using ::testing::ElementsAreArray;

// How far the server has gone with the client's request.
enum class Stage { kUnread, kRead, kAccepted, kEstablished, kRejected, kDisconnected };
enum class PeerCall { kDestroy, kDisconnect };

struct EventRow {
  const char* name;
  Stage stage;
  PeerCall call;            // which the client then makes
  std::vector<int> events;  // that the server's ID gets for it
};

void PrintTo(const EventRow& row, std::ostream* out) { *out << row.name; }

const EventRow kRows[] = {
    {"UnreadDestroy", Stage::kUnread, PeerCall::kDestroy, {}},
    {"ReadDestroy", Stage::kRead, PeerCall::kDestroy, {}},
    {"AcceptedDestroy", Stage::kAccepted, PeerCall::kDestroy, {RDMA_CM_EVENT_REJECTED}},
    {"EstablishedDestroy", Stage::kEstablished, PeerCall::kDestroy, {RDMA_CM_EVENT_DISCONNECTED}},
    {"EstablishedDisconnect",
     Stage::kEstablished,
     PeerCall::kDisconnect,
     {RDMA_CM_EVENT_DISCONNECTED}},
    {"RejectedDestroy", Stage::kRejected, PeerCall::kDestroy, {}},
    {"DisconnectedDestroy", Stage::kDisconnected, PeerCall::kDestroy, {}},
};

class RequestEventsTest : public RDMACMTest {
 protected:
  // Both ends bring their own QPs, so that each call takes one step of the connection.
  void SetUp() override {
    RDMACMTest::SetUp();
    listener_ = make_listener();
    client_ = make_resolved(port_of(listener_));
    rdma_conn_param param = with_data("");
    param.qp_num = 0x124;
    ASSERT_EQ(rdma_connect(client_, &param), 0);
    ASSERT_TRUE(has_event(10'000));
  }

  int accept() {
    rdma_conn_param param = with_data("");
    param.qp_num = 0x457;
    return rdma_accept(server_, &param) == 0 ? 0 : errno;
  }

  void read_request() {
    if (server_ != nullptr) return;
    const Event request = expect_event(RDMA_CM_EVENT_CONNECT_REQUEST);
    server_ = request.id;
    EXPECT_EQ(request.listener, listener_);
  }

  void bring_to(Stage stage) {
    if (stage == Stage::kUnread) return;
    read_request();
    if (stage == Stage::kRead) return;
    if (stage == Stage::kRejected) {
      ASSERT_EQ(rdma_reject(server_, nullptr, 0), 0);
      expect_event(RDMA_CM_EVENT_REJECTED);
      return;
    }
    ASSERT_EQ(accept(), 0);
    expect_event(RDMA_CM_EVENT_CONNECT_RESPONSE);
    if (stage == Stage::kAccepted) return;
    ASSERT_EQ(rdma_establish(client_), 0);
    EXPECT_EQ(expect_event(RDMA_CM_EVENT_ESTABLISHED).id, server_);
    if (stage == Stage::kEstablished) return;
    ASSERT_EQ(rdma_disconnect(server_), 0);
    EXPECT_EQ(expect_event(RDMA_CM_EVENT_DISCONNECTED).id, client_);
    ASSERT_EQ(rdma_disconnect(client_), 0);
    EXPECT_EQ(expect_event(RDMA_CM_EVENT_DISCONNECTED).id, server_);
  }

  void call(PeerCall what) {
    switch (what) {
      case PeerCall::kDestroy: return destroy(client_);
      case PeerCall::kDisconnect: EXPECT_EQ(rdma_disconnect(client_), 0); return;
    }
  }

  rdma_cm_id *listener_ = nullptr, *client_ = nullptr, *server_ = nullptr;
};

class EventStatesTest : public RequestEventsTest, public ::testing::WithParamInterface<EventRow> {};

TEST_P(EventStatesTest, AreThoseOfLinux) {
  const EventRow& row = GetParam();
  bring_to(row.stage);
  if (HasFatalFailure()) return;
  call(row.call);
  // The peer's message is on its way: an ID that it must not reach is watched for a while.
  std::vector<int> told;
  while (has_event(row.events.size() > told.size() ? 10'000 : 100)) {
    const Event event = next_event();
    if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      server_ = event.id;
    } else if (event.type != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
      EXPECT_EQ(event.id, server_) << rdma_event_str(static_cast<rdma_cm_event_type>(event.type));
      told.push_back(event.type);
    }
  }
  ASSERT_NE(server_, nullptr);
  EXPECT_THAT(told, ElementsAreArray(row.events));
  EXPECT_EQ(accept(), EINVAL);
  EXPECT_EQ(rdma_reject(server_, nullptr, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_FALSE(has_event(0));
}

INSTANTIATE_TEST_SUITE_P(States, EventStatesTest, ::testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

// A listener that moves takes its unread requests along: their IDs belong to the new channel, and
// so do the events that follow.
TEST_F(RequestEventsTest, AnUnreadRequestMovesWithItsListener) {
  rdma_event_channel* const old_channel = channel;
  rdma_event_channel* const new_channel = rdma_create_event_channel();
  ASSERT_NE(new_channel, nullptr);
  ASSERT_EQ(rdma_migrate_id(listener_, new_channel), 0);
  channel = new_channel;
  read_request();
  ASSERT_NE(server_, nullptr);
  EXPECT_EQ(server_->channel, new_channel);
  ASSERT_EQ(accept(), 0);
  channel = old_channel;
  expect_event(RDMA_CM_EVENT_CONNECT_RESPONSE);
  ASSERT_EQ(rdma_establish(client_), 0);
  channel = new_channel;
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_ESTABLISHED).id, server_);
  destroy(server_);
  destroy(listener_);
  channel = old_channel;
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_DISCONNECTED).id, client_);
  rdma_destroy_event_channel(new_channel);
}

}  // namespace
}  // namespace verbena::test
