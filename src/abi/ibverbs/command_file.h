// CommandFile: the file behind cmd_fd of an ibv_context. There is no kernel to command: it is a
// file of memory that names the open device, its process, and the place where that process exports
// its objects. A process that gets the descriptor (dup, SCM_RIGHTS) can open the same device:
// ibv_import_device(3).
#pragma once

#include <optional>

#include "host/local/segment.h"
#include "host/network/local_address.h"
#include "host/os/descriptor.h"

namespace verbena::abi {

struct CommandFile {
  std::string device_name;
  std::string choice;                      // of VERBENA_ADDRESS, for this device alone
  std::optional<host::ExportPlace> place;  // nullopt if it exports nothing
  bool of_this_process = false;

  [[nodiscard]] static CommandFile describe(const host::LocalAddress& address,
                                            const std::optional<host::ExportPlace>& place);
  [[nodiscard]] host::Descriptor write() const;                  // if not open, errno says why
  [[nodiscard]] static std::optional<CommandFile> read(int fd);  // nullopt if it is no such file
};

}  // namespace verbena::abi
