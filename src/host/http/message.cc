#include "host/http/message.h"

#include <algorithm>

namespace verbena::host {
namespace {

using State = HTTPRequest::State;

constexpr std::string_view reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    default: return "Bad Request";
  }
}

bool is_visible(char c) { return c > ' ' && c <= '~'; }
bool is_letter(char c) { return c >= 'A' && c <= 'Z'; }

// METHOD SP target SP HTTP/1.x
HTTPRequest parse_line(std::string_view line) {
  const HTTPRequest malformed{.state = State::kMalformed};
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return malformed;
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (method.empty() || !std::ranges::all_of(method, is_letter)) return malformed;
  if (!target.starts_with('/') || !std::ranges::all_of(target, is_visible)) return malformed;
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return malformed;
  return {.state = State::kComplete, .method = method, .target = target};
}

}  // namespace

HTTPRequest parse_request(std::string_view bytes) {
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string_view::npos)
    return {.state = bytes.size() >= kMaxRequestBytes ? State::kTooLarge : State::kIncomplete};
  if (end > kMaxRequestBytes) return {.state = State::kTooLarge};
  return parse_line(bytes.substr(0, bytes.find("\r\n")));
}

std::string to_wire(const HTTPAnswer& answer, std::string_view method) {
  std::string head = "HTTP/1.1 " + std::to_string(answer.status) + " ";
  head += reason_of(answer.status);
  head += "\r\nContent-Type: ";
  head += answer.content_type;
  head += "\r\nContent-Length: " + std::to_string(answer.body.size());
  if (answer.status == 405) head += "\r\nAllow: GET, HEAD";
  head += "\r\nConnection: close\r\n\r\n";
  return method == "HEAD" ? head : head + answer.body;
}

}  // namespace verbena::host
