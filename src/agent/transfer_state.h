// TransferState: a prepared transfer, as the program holds it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "agent/error.h"
#include "transfer/flow.h"
#include "transfer/metadata.h"

namespace verbena::agent {

using Keys = std::array<u32, transfer::kMaxRails>;  // one for each rail of its owner

struct TransferState {
  transfer::Operation operation = transfer::Operation::kRead;
  std::string peer{};
  u64 incarnation = 0;  // of the peer whose metadata it was prepared with
  std::vector<transfer::Copy> copies{};
  std::vector<Keys> local_keys{}, remote_keys{};  // by the regions of the copies
  u8 priority = 0;
  bool notifies = false;
  bool is_staged = false;
  std::vector<u64> local_ends{};  // of a staged one: bytes up to the end of each local block
  std::string notification{};

  // Since it was posted.
  int status = VERBENA_TRANSFER_OK;
  std::string why{};
  u32 link = 0, id = 0;
  u32 lone_breaks = 0;  // lanes that ended while they had one request, of this transfer
};

}  // namespace verbena::agent
