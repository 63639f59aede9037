// Failure: why a command ends early: its exit status, and one line for a person.
#pragma once

#include <string>

#include <tl/expected.hpp>

#include "cli/exit_status.h"

namespace verbena::cli {

struct Failure {
  int exit_status = kExitCannot;
  std::string message;  // what, and what to do; "": another process says it
};

template <typename T>
using Expected = tl::expected<T, Failure>;
inline tl::unexpected<Failure> failure(int exit_status, std::string message) {
  return tl::unexpected<Failure>(Failure{exit_status, std::move(message)});
}
inline tl::unexpected<Failure> cannot(std::string message) {
  return failure(kExitCannot, std::move(message));
}

}  // namespace verbena::cli
