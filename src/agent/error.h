// A failure: a status of verbena/transfer.h and one line of text.
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

#include <verbena/transfer.h>

#include "coll/error.h"

namespace verbena::agent {

struct Error {
  int status = VERBENA_TRANSFER_OK;
  std::string text{};
};

template <typename T>
using Expected = tl::expected<T, Error>;

inline tl::unexpected<Error> failure(int status, std::string text) {
  return tl::unexpected<Error>(Error{status, std::move(text)});
}
inline tl::unexpected<Error> system_failure(const coll::Error& error) {
  return failure(VERBENA_TRANSFER_SYSTEM, error.text);
}
inline tl::unexpected<Error> peer_failure(const coll::Error& error) {
  return failure(VERBENA_TRANSFER_PEER, error.text);
}

}  // namespace verbena::agent
