// Requests of an LLM service, as Mooncake's open traces have them: a JSON object a line,
//
//   {"timestamp": 1250, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2, 13]}
//
// with milliseconds since any moment, tokens, and an ID for each block of 512 input tokens: equal
// IDs are equal prefixes.
#pragma once

#include <string_view>
#include <vector>

#include "transfer/list.h"

namespace verbena::transfer {

struct TracedRequest {
  u64 arrival_ms = 0;  // after the first request of the trace
  u32 input_tokens = 0, output_tokens = 0;
  std::vector<u64> blocks{};  // IDs
  friend bool operator==(const TracedRequest&, const TracedRequest&) = default;
};

struct RequestTrace {
  static constexpr u32 kBlockTokens = 512;
  static constexpr std::size_t kMaxRequests = 1'000'000;

  std::vector<TracedRequest> requests{};  // by arrival
  // The failure names the line. Empty lines are passed over.
  [[nodiscard]] static Expected<RequestTrace> parse(std::string_view text);
};

}  // namespace verbena::transfer
