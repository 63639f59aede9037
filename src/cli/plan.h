// `verbena plan`: what switches and NICs are to be set to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "cli/requests.h"

namespace verbena::cli {

// Options as they were given; "": not given.
struct TuningWords {
  std::string rate, cable, mtu, buffer, ports;
};
// Or which option is wrong, and how it would be right.
[[nodiscard]] tl::expected<jobs::TuningRequest, std::string> parse_tuning(const TuningWords& words);

// Names with commas between them, as a switch names its ports: Ethernet0,Ethernet8. Or which is
// none.
[[nodiscard]] tl::expected<std::vector<std::string>, std::string> parse_interfaces(
    std::string_view text);

// Returns the text to print.
[[nodiscard]] std::string plan(const PlanRequest& request);

}  // namespace verbena::cli
