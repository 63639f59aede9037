#include "host/http/message.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

using State = HTTPRequest::State;

int status_of(std::string_view bytes) {
  return answer_to(parse_request(bytes), [] { return HTTPAnswer{.body = "page"}; }).status;
}

TEST(HTTPMessageTest, ARequestIsTakenApart) {
  const HTTPRequest request = parse_request("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(request.state, State::kComplete);
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.target, "/metrics");
}

TEST(HTTPMessageTest, EveryBeginningIsIncomplete) {
  const std::string_view whole = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
  for (std::size_t n = 0; n < whole.size(); ++n)
    EXPECT_EQ(parse_request(whole.substr(0, n)).state, State::kIncomplete) << n;
}

TEST(HTTPMessageTest, Answers) {
  EXPECT_EQ(status_of("GET /metrics HTTP/1.1\r\n\r\n"), 200);
  EXPECT_EQ(status_of("GET /metrics?x=1 HTTP/1.0\r\n\r\n"), 200);
  EXPECT_EQ(status_of("HEAD /metrics HTTP/1.1\r\n\r\n"), 200);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 404);
  EXPECT_EQ(status_of("GET /metrics/ HTTP/1.1\r\n\r\n"), 404);
  EXPECT_EQ(status_of("POST /metrics HTTP/1.1\r\n\r\n"), 405);
}

TEST(HTTPMessageTest, WhatIsMalformed) {
  for (const char* bytes : {"\r\n\r\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n",
                            "GET metrics HTTP/1.1\r\n\r\n", "GET /metrics HTTP/2.0\r\n\r\n",
                            "get /metrics HTTP/1.1\r\n\r\n", " /metrics HTTP/1.1\r\n\r\n",
                            "GET /met\x01rics HTTP/1.1\r\n\r\n", "GET /met rics HTTP/1.1\r\n\r\n"})
    EXPECT_EQ(status_of(bytes), 400) << bytes;
}

TEST(HTTPMessageTest, TooLarge) {
  const std::string much(kMaxRequestBytes, 'x');
  EXPECT_EQ(parse_request(much).state, State::kTooLarge);
  EXPECT_EQ(status_of("GET /" + much + " HTTP/1.1\r\n\r\n"), 431);
}

TEST(HTTPMessageTest, OnTheWire) {
  const HTTPAnswer answer{.status = 200, .content_type = "a/b", .body = "hello"};
  EXPECT_EQ(to_wire(answer, "GET"),
            "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 5\r\n"
            "Connection: close\r\n\r\nhello");
  EXPECT_FALSE(to_wire(answer, "HEAD").ends_with("hello"));
  EXPECT_NE(to_wire({.status = 405}, "POST").find("Allow: GET, HEAD"), std::string::npos);
}

}  // namespace
}  // namespace verbena::host
