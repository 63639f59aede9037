// `verbena plan`: the settings for switches and NICs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "cli/requests.h"

namespace verbena::cli {

// The options as given; "" if an option was not given.
struct TuningWords {
  std::string rate, cable, mtu, buffer, ports;
};
// Returns the request, or an error that names the wrong option and its correct form.
[[nodiscard]] tl::expected<jobs::TuningRequest, std::string> parse_tuning(const TuningWords& words);

// Parses names with commas between them, as a switch names its ports: Ethernet0,Ethernet8. The
// error names the part that is no name.
[[nodiscard]] tl::expected<std::vector<std::string>, std::string> parse_interfaces(
    std::string_view text);

// Returns the text to print.
[[nodiscard]] std::string plan(const PlanRequest& request);

}  // namespace verbena::cli
