// `verbena devices`: opens each device as a program would, and says what it is.
#pragma once

#include <string>

#include "cli/failure.h"
#include "cli/requests.h"

namespace verbena::cli {

struct DevicesOutcome {
  std::string output;
  std::string problem;  // "": every device can be used
};

[[nodiscard]] Expected<DevicesOutcome> devices(const DevicesRequest& request);

}  // namespace verbena::cli
