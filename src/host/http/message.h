// The little of HTTP/1.1 that one page needs (RFC 9112): the head of a request, and a whole answer,
// after which the connection ends.
#pragma once

#include <string>
#include <string_view>

namespace verbena::host {

inline constexpr std::size_t kMaxRequestBytes = 8192;  // of the head

struct HTTPRequest {
  enum class State {
    kIncomplete,  // more must come
    kComplete,
    kMalformed,  // 400
    kTooLarge,   // 431
  };
  State state = State::kIncomplete;
  std::string_view method{}, target{};  // where complete; parts of the bytes
};

// `bytes` are the bytes received so far, untrusted.
[[nodiscard]] HTTPRequest parse_request(std::string_view bytes);

struct HTTPAnswer {
  int status = 200;
  std::string_view content_type = "text/plain; charset=utf-8";
  std::string body{};
};

// `page`: called for GET or HEAD of /metrics.
template <typename Page>
[[nodiscard]] HTTPAnswer answer_to(const HTTPRequest& request, Page&& page) {
  if (request.state == HTTPRequest::State::kTooLarge) return {.status = 431, .body = "too large\n"};
  if (request.state != HTTPRequest::State::kComplete) return {.status = 400, .body = "malformed\n"};
  if (request.target.substr(0, request.target.find('?')) != "/metrics")
    return {.status = 404, .body = "only /metrics is here\n"};
  if (request.method != "GET" && request.method != "HEAD")
    return {.status = 405, .body = "only GET and HEAD are allowed\n"};
  return page();
}

// As it goes on the wire. To HEAD: without the body.
[[nodiscard]] std::string to_wire(const HTTPAnswer& answer, std::string_view method);

}  // namespace verbena::host
