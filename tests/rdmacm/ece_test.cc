// Enhanced connection establishment: what two ends of one vendor agree on. rdma_set_local_ece(3),
// rdma_get_remote_ece(3).
#include <cerrno>

#include "tests/rdmacm/rdmacm_fixture.h"

namespace verbena::test {
namespace {

// Not that of our QPs: programs may agree on anything.
constexpr std::uint32_t kVendor = 0x02c9fe;

class ECETest : public RDMACMTest {
 protected:
  // A client of a listener, whose QP is a program's own; it has not connected yet.
  rdma_cm_id* client_of(rdma_cm_id* listener) { return make_resolved(port_of(listener)); }

  static rdma_conn_param with_qp(std::uint32_t qpn) {
    rdma_conn_param param = with_data("");
    param.qp_num = qpn;
    return param;
  }

  static ibv_ece remote_of(rdma_cm_id* id) {
    ibv_ece ece{.vendor_id = 7, .options = 7, .comp_mask = 7};
    EXPECT_EQ(rdma_get_remote_ece(id, &ece), 0);
    EXPECT_EQ(ece.comp_mask, 0u);
    return ece;
  }

  static int set_local(rdma_cm_id* id, std::uint32_t vendor, std::uint32_t options) {
    ibv_ece ece{.vendor_id = vendor, .options = options, .comp_mask = 0};
    return rdma_set_local_ece(id, &ece);
  }

  // The ID that the request makes.
  rdma_cm_id* request(rdma_cm_id* client) {
    rdma_conn_param param = with_qp(0x123);
    EXPECT_EQ(rdma_connect(client, &param), 0);
    return expect_event(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  }
};

TEST_F(ECETest, OffersAndAnswersReachTheOtherSide) {
  rdma_cm_id* client = client_of(make_listener());
  EXPECT_EQ(remote_of(client).vendor_id, 0u) << "nothing yet";
  ASSERT_EQ(set_local(client, kVendor, 0xf0f0f0f1), 0);
  rdma_cm_id* server = request(client);
  EXPECT_EQ(remote_of(server).vendor_id, kVendor);
  EXPECT_EQ(remote_of(server).options, 0xf0f0f0f1u);

  ASSERT_EQ(set_local(server, kVendor, 0x80000001), 0);
  rdma_conn_param param = with_qp(0x456);
  ASSERT_EQ(rdma_accept(server, &param), 0);
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_CONNECT_RESPONSE).id, client);
  EXPECT_EQ(remote_of(client).vendor_id, kVendor);
  EXPECT_EQ(remote_of(client).options, 0x80000001u);
  ASSERT_EQ(rdma_establish(client), 0);
  EXPECT_EQ(expect_event(RDMA_CM_EVENT_ESTABLISHED).id, server);
}

TEST_F(ECETest, WithoutAnOfferThereIsNothingToAnswer) {
  rdma_cm_id* client = client_of(make_listener());
  rdma_cm_id* server = request(client);
  EXPECT_EQ(remote_of(server).vendor_id, 0u);
  ASSERT_EQ(set_local(server, kVendor, 5), 0);
  rdma_conn_param param = with_qp(0x456);
  ASSERT_EQ(rdma_accept(server, &param), 0);
  expect_event(RDMA_CM_EVENT_CONNECT_RESPONSE);
  EXPECT_EQ(remote_of(client).vendor_id, 0u) << "an answer is in the name of who has asked";
}

TEST_F(ECETest, TheIdsOwnQPAnswersAnotherVendorWithNothing) {
  rdma_cm_id* client = client_of(make_listener());
  ASSERT_EQ(set_local(client, kVendor, 0xffffffff), 0);
  rdma_cm_id* server = request(client);
  make_qp(server);
  ASSERT_EQ(rdma_accept(server, nullptr), 0);
  expect_event(RDMA_CM_EVENT_CONNECT_RESPONSE);
  EXPECT_EQ(remote_of(client).vendor_id, kVendor);
  EXPECT_EQ(remote_of(client).options, 0u);
}

TEST_F(ECETest, TheIdsOwnQPOffersWhatItKnows) {
  rdma_cm_id* client = client_of(make_listener());
  make_qp(client);
  ibv_ece own{};
  ASSERT_EQ(ibv_query_ece(client->qp, &own), 0);
  ASSERT_EQ(rdma_connect(client, nullptr), 0);
  rdma_cm_id* server = expect_event(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  EXPECT_EQ(remote_of(server).vendor_id, own.vendor_id);
  EXPECT_EQ(remote_of(server).options, own.options);
  make_qp(server);
  ASSERT_EQ(rdma_accept(server, nullptr), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(expect_event(RDMA_CM_EVENT_ESTABLISHED).status, 0);
}

TEST_F(ECETest, RejectionTellsThatTheOptionsAreNotSupported) {
  rdma_cm_id* client = client_of(make_listener());
  ASSERT_EQ(set_local(client, kVendor, 1), 0);
  rdma_cm_id* server = request(client);
  ASSERT_EQ(rdma_reject_ece(server, "no", 3), 0);
  const Event event = expect_event(RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(event.id, client);
  EXPECT_EQ(event.status, 35) << "vendor option not supported";
  EXPECT_STREQ(event.data.c_str(), "no");
}

TEST_F(ECETest, BadArgumentsAreInvalid) {
  rdma_cm_id* client = client_of(make_listener());
  const auto invalid = [](int result) { return result == -1 && errno == EINVAL; };
  EXPECT_TRUE(invalid(set_local(client, 0, 1))) << "no vendor";
  ibv_ece ece{.vendor_id = kVendor, .options = 1, .comp_mask = 1};
  EXPECT_TRUE(invalid(rdma_set_local_ece(client, &ece))) << "fields of a later time";
  EXPECT_TRUE(invalid(rdma_set_local_ece(client, nullptr)));
  EXPECT_TRUE(invalid(rdma_get_remote_ece(client, nullptr)));
  EXPECT_TRUE(invalid(rdma_get_remote_ece(nullptr, &ece)));
  make_qp(client);
  EXPECT_TRUE(invalid(set_local(client, kVendor, 1))) << "its QP agrees by itself";
  EXPECT_TRUE(invalid(rdma_get_remote_ece(client, &ece)));
}

}  // namespace
}  // namespace verbena::test
