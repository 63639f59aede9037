// Error: a failure: the status of verbena/collectives.h, one line of text, and the rank to blame,
// if any.
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

#include <verbena/collectives.h>

namespace verbena::coll {

struct Error {
  int status = VERBENA_COLL_OK;
  std::string text{};
  int rank = -1;  // of the world
};

template <typename T>
using Expected = tl::expected<T, Error>;

inline tl::unexpected<Error> failure(int status, std::string text, int rank = -1) {
  return tl::unexpected<Error>(Error{status, std::move(text), rank});
}

}  // namespace verbena::coll
