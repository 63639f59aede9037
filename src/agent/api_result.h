// The common parts of the C functions: results with the text of verbena_agent_error(), structs with
// a size, and what is behind the opaque handles.
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "agent/agent.h"

struct verbena_agent {
  std::unique_ptr<verbena::agent::Agent> agent;
};
struct verbena_transfer {
  verbena::agent::Agent* agent = nullptr;
  std::shared_ptr<verbena::agent::TransferState> state;
  std::shared_ptr<void> kept{};   // blocks of a KV cache
  verbena::u64 layer_blocks = 0;  // of the local list, for each layer of a KV cache
};

namespace verbena::agent {

int told(int status, std::string text);
[[nodiscard]] const std::string& last_text();
inline int told(const Error& error) { return told(error.status, error.text); }
template <typename T>
int result(const Expected<T>& expected) {
  return expected ? told(VERBENA_TRANSFER_OK, "") : told(expected.error());
}
inline int invalid(const char* why) { return told(VERBENA_TRANSFER_INVALID, why); }

// A struct that grows keeps its first members: an older caller gives a smaller size.
template <typename T>
bool has_size(const T* options) {
  return options == nullptr || (options->size >= sizeof(size_t) && options->size <= sizeof(T));
}
template <typename T>
T copy_of(const T* options) {
  T copy{};
  if (options != nullptr) std::memcpy(&copy, options, options->size);
  return copy;
}

}  // namespace verbena::agent
