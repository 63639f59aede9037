#include "transfer/request_trace.h"

#include <algorithm>

#include "transfer/json.h"

namespace verbena::transfer {
namespace {

constexpr u64 kMaxTokens = 1 << 24;
constexpr u64 kMaxTimestamp_ms = u64{1} << 53;

Expected<TracedRequest> read_request(std::string_view line) {
  const auto json = JSON::parse(line);
  if (!json) return tl::unexpected(json.error());
  const auto number = [&](const char* key) -> std::optional<u64> {
    const JSON* const value = json->find(key);
    return value == nullptr ? std::nullopt : value->whole();
  };
  const auto arrival = number("timestamp"), input = number("input_length"),
             output = number("output_length");
  if (!arrival || !input || !output)
    return tl::unexpected<std::string>(
        "timestamp, input_length and output_length have to be whole numbers");
  if (*input == 0 || *input > kMaxTokens || *output > kMaxTokens || *arrival > kMaxTimestamp_ms)
    return tl::unexpected<std::string>("a number is not possible");
  TracedRequest request{.arrival_ms = *arrival,
                        .input_tokens = static_cast<u32>(*input),
                        .output_tokens = static_cast<u32>(*output)};
  const JSON* const ids = json->find("hash_ids");
  if (ids == nullptr) return request;
  for (const JSON& id : ids->items) {
    const auto value = id.whole();
    if (!value) return tl::unexpected<std::string>("a hash ID is no whole number");
    request.blocks.push_back(*value);
  }
  const u64 blocks = (*input + RequestTrace::kBlockTokens - 1) / RequestTrace::kBlockTokens;
  if (request.blocks.size() > blocks)
    return tl::unexpected<std::string>("there are more hash IDs than blocks of 512 tokens");
  return request;
}

}  // namespace

Expected<RequestTrace> RequestTrace::parse(std::string_view text) {
  RequestTrace trace;
  for (u64 number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto request = read_request(line);
    if (!request) return tl::unexpected("line " + std::to_string(number) + ": " + request.error());
    trace.requests.push_back(std::move(*request));
    if (trace.requests.size() > kMaxRequests)
      return tl::unexpected<std::string>("more than 1,000,000 requests");
  }
  if (trace.requests.empty()) return tl::unexpected<std::string>("there is no request");
  std::ranges::stable_sort(trace.requests, {}, &TracedRequest::arrival_ms);
  const u64 first_ms = trace.requests.front().arrival_ms;
  for (TracedRequest& request : trace.requests) request.arrival_ms -= first_ms;
  return trace;
}

}  // namespace verbena::transfer
