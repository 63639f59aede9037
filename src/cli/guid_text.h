// A GUID as ibv_devinfo prints it: 16-bit groups, most significant first.
#pragma once

#include <string>

#include <fmt/format.h>

#include "base/types.h"

namespace verbena::cli {

[[nodiscard]] inline std::string guid_text(u64 guid) {
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, (guid >> 32) & 0xffff,
                     (guid >> 16) & 0xffff, guid & 0xffff);
}

}  // namespace verbena::cli
