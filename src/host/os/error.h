// Error: why the operating system would not give us something, for a person to read.
#pragma once

#include <string>

#include <tl/expected.hpp>

namespace verbena::host {

struct Error {
  int error = 0;        // errno
  std::string message;  // one line: what, and what to do
};

template <typename T>
using Expected = tl::expected<T, Error>;
inline tl::unexpected<Error> failure(int error, std::string message) {
  return tl::unexpected<Error>(Error{error, std::move(message)});
}

}  // namespace verbena::host
