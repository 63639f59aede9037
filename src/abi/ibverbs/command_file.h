// CommandFile: what cmd_fd of an ibv_context is here, where there is no kernel to command: a file
// of memory that says which device is open, in which process, and where that exports what it makes.
// Whoever gets the descriptor (dup, SCM_RIGHTS) can open the same device: ibv_import_device(3).
#pragma once

#include <optional>

#include "host/local/segment.h"
#include "host/network/local_address.h"
#include "host/os/descriptor.h"

namespace verbena::abi {

struct CommandFile {
  std::string device_name;
  std::string choice;                      // of VERBENA_ADDRESS, for this device alone
  std::optional<host::ExportPlace> place;  // nullopt: it exports nothing
  bool of_this_process = false;

  [[nodiscard]] static CommandFile describe(const host::LocalAddress& address,
                                            const std::optional<host::ExportPlace>& place);
  [[nodiscard]] host::Descriptor write() const;                  // not open: errno tells why
  [[nodiscard]] static std::optional<CommandFile> read(int fd);  // nullopt: no such file
};

}  // namespace verbena::abi
