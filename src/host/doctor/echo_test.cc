#include "host/doctor/echo.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

TEST(EchoTest, ARequestBothWays) {
  const EchoRequest request{.transaction_id = 0x1122334455667788,
                            .ours = CommId{0x400001},
                            .theirs = CommId{0x800002},
                            .answer_traffic_class = 3};
  EXPECT_EQ(decode_request(request.encode()), request);
  EXPECT_FALSE(decode_reply(request.encode()).has_value());
}

TEST(EchoTest, AReplyBothWays) {
  EchoReply reply{.transaction_id = 7, .ours = CommId{1}, .theirs = CommId{2}, .note = {}};
  EXPECT_EQ(decode_reply(reply.encode()), reply);
  reply.note = EchoNote{.transport_bytes = 4124, .traffic_class = 2, .hop_limit = 63};
  EXPECT_EQ(decode_reply(reply.encode()), reply);
  EXPECT_FALSE(decode_request(reply.encode()).has_value());
}

TEST(EchoTest, TheDREQOfAnotherAsksForNoMark) {
  cm::DREQ dreq{.local_comm_id = CommId{1}};
  dreq.private_data.fill(3);
  const auto request = decode_request(cm::Message{.transaction_id = 1, .body = dreq}.encode());
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->answer_traffic_class, 0);
}

TEST(EchoTest, WhatIsShortIsNeither) {
  const cm::MADBytes bytes = EchoRequest{}.encode();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(decode_request(std::span(bytes).first(n)).has_value()) << n;
    EXPECT_FALSE(decode_reply(std::span(bytes).first(n)).has_value()) << n;
  }
}

}  // namespace
}  // namespace verbena::host
