#include "tests/rdmacm/rdmacm_fixture.h"

#include <arpa/inet.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace verbena::test {
namespace {

constexpr int kEventLimit_ms = 30'000;

std::string text_of(const void* data, std::uint8_t size) {
  return data == nullptr ? "" : std::string(static_cast<const char*>(data), size);
}

}  // namespace

const std::string& RDMACMTest::own_address() {
  static const std::string address = "127." + std::to_string(1 + ::getpid() % 250) + "." +
                                     std::to_string(::getpid() / 250 % 256) + ".3";
  return address;
}

void RDMACMTest::SetUp() {
  setenv("VERBENA_ADDRESS", own_address().c_str(), 1);
  channel = rdma_create_event_channel();
  ASSERT_NE(channel, nullptr);
}

void RDMACMTest::TearDown() {
  while (!ids_.empty()) destroy(ids_.back());
  rdma_destroy_event_channel(channel);
}

sockaddr_in RDMACMTest::address(const std::string& text, std::uint16_t port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, text.c_str(), &to.sin_addr), 1) << text;
  return to;
}

sockaddr_in6 RDMACMTest::address6(const std::string& text, std::uint16_t port) {
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET6, text.c_str(), &to.sin6_addr), 1) << text;
  return to;
}

rdma_cm_id* RDMACMTest::make_id(rdma_port_space space) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_id(channel, &id, this, space), 0);
  ids_.push_back(id);
  return id;
}

void RDMACMTest::destroy(rdma_cm_id* id) {
  std::erase(ids_, id);
  if (id->qp != nullptr) rdma_destroy_qp(id);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

rdma_cm_id* RDMACMTest::make_listener(rdma_port_space space) {
  rdma_cm_id* id = make_id(space);
  sockaddr_in here = address(own_address(), 0);
  EXPECT_EQ(rdma_bind_addr(id, any(here)), 0);
  EXPECT_EQ(rdma_listen(id, 8), 0);
  return id;
}

rdma_cm_id* RDMACMTest::make_resolved(std::uint16_t port, rdma_port_space space) {
  rdma_cm_id* id = make_id(space);
  sockaddr_in there = address(own_address(), port);
  EXPECT_EQ(rdma_resolve_addr(id, nullptr, any(there), 1000), 0);
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_ADDR_RESOLVED).id, id);
  EXPECT_EQ(rdma_resolve_route(id, 1000), 0);
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_ROUTE_RESOLVED).id, id);
  return id;
}

void RDMACMTest::make_qp(rdma_cm_id* id, ibv_qp_type type) {
  ibv_qp_init_attr attr{};
  attr.qp_type = type;
  attr.cap.max_send_wr = attr.cap.max_recv_wr = 8;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  attr.cap.max_inline_data = 64;
  attr.sq_sig_all = 1;
  EXPECT_EQ(rdma_create_qp(id, nullptr, &attr), 0);
  EXPECT_NE(id->qp, nullptr);
}

bool RDMACMTest::has_event(int wait_ms) const {
  pollfd waiting{.fd = channel->fd, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, wait_ms) == 1;
}

Event RDMACMTest::next_event() {
  rdma_cm_event* got = nullptr;
  if (!has_event(kEventLimit_ms) || rdma_get_cm_event(channel, &got) != 0) return {};
  Event event{.type = got->event,
              .status = got->status,
              .id = got->id,
              .listener = got->listen_id,
              .data = {}};
  if (got->id->qp_type == IBV_QPT_UD) {
    event.ud = got->param.ud;
    event.data = text_of(event.ud.private_data, event.ud.private_data_len);
  } else {
    event.conn = got->param.conn;
    event.data = text_of(event.conn.private_data, event.conn.private_data_len);
  }
  if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST) ids_.push_back(event.id);
  EXPECT_EQ(rdma_ack_cm_event(got), 0);
  return event;
}

Event RDMACMTest::expect_event(int type) {
  const Event event = next_event();
  EXPECT_EQ(event.type, type) << rdma_event_str(static_cast<rdma_cm_event_type>(event.type))
                              << ", status " << event.status;
  return event;
}

rdma_conn_param RDMACMTest::with_data(const std::string& data) {
  rdma_conn_param param{};
  param.private_data = data.data();
  param.private_data_len = static_cast<std::uint8_t>(data.size());
  param.responder_resources = param.initiator_depth = 1;
  param.retry_count = param.rnr_retry_count = 7;
  return param;
}

RDMACMTest::Pair RDMACMTest::connect_pair() {
  rdma_cm_id* listener = make_listener();
  rdma_cm_id* client = make_resolved(port_of(listener));
  make_qp(client);
  EXPECT_EQ(rdma_connect(client, nullptr), 0);
  rdma_cm_id* server = expect_event(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  if (server == nullptr) return {client, nullptr};
  make_qp(server);
  EXPECT_EQ(rdma_accept(server, nullptr), 0);
  std::vector<rdma_cm_id*> established;
  for (int i = 0; i < 2; ++i) established.push_back(expect_event(RDMA_CM_EVENT_ESTABLISHED).id);
  EXPECT_THAT(established, ::testing::UnorderedElementsAre(client, server));
  return {client, server};
}

}  // namespace verbena::test
