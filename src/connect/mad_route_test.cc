#include "connect/mad_route.h"

#include <gtest/gtest.h>

#include "connect/cm_test_host.h"
#include "wire/ib/cm/message.h"

namespace verbena {
namespace {

using test::kService;

constexpr CommId kOurs{0x00c00001}, kTheirs{0x12345678};

std::optional<MADRoute> route(const cm::Body& body) {
  return route_of(cm::Message{.body = body}.encode());
}

TEST(MADRouteTest, RequestsGoByServiceID) {
  const MADRoute expected{.by = RouteBy::kServiceId, .service_id = kService};
  EXPECT_EQ(route(cm::REQ{.local_comm_id = kTheirs, .service_id = kService}), expected);
  EXPECT_EQ(route(cm::SIDRREQ{.request_id = kTheirs, .service_id = kService}), expected);
}

template <typename T>
std::optional<MADRoute> route_to(CommId ours) {
  T message;
  message.local_comm_id = kTheirs;
  message.remote_comm_id = ours;
  return route(message);
}

TEST(MADRouteTest, TheRestGoesByOurID) {
  const MADRoute expected{.by = RouteBy::kCommId, .comm_id = kOurs};
  EXPECT_EQ(route_to<cm::MRA>(kOurs), expected);
  EXPECT_EQ(route_to<cm::REJ>(kOurs), expected);
  EXPECT_EQ(route_to<cm::REP>(kOurs), expected);
  EXPECT_EQ(route_to<cm::RTU>(kOurs), expected);
  EXPECT_EQ(route_to<cm::DREQ>(kOurs), expected);
  EXPECT_EQ(route_to<cm::DREP>(kOurs), expected);
  EXPECT_EQ(route_to<cm::LAP>(kOurs), expected);
  EXPECT_EQ(route_to<cm::APR>(kOurs), expected);
  EXPECT_EQ(route(cm::SIDRREP{.request_id = kOurs}), expected);
}

TEST(MADRouteTest, ARejectWithoutOurIDGoesToAll) {
  EXPECT_EQ(route_to<cm::REJ>(CommId{}), MADRoute{.by = RouteBy::kEveryProcess});
}

TEST(MADRouteTest, OtherMADsGoNowhere) {
  EXPECT_EQ(route_of({}), std::nullopt);
  cm::MADBytes mad = cm::Message{.body = cm::RTU{}}.encode();
  mad[1] = 0x04;  // performance management
  EXPECT_EQ(route_of(mad), std::nullopt);
}

}  // namespace
}  // namespace verbena
