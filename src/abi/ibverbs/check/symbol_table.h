// Names of functions from a module's own symbol table, which has those that no dynamic symbol
// names: a program's, unless it was stripped.
#pragma once

#include <optional>
#include <string>

#include "base/types.h"

namespace verbena::abi {

struct Symbol {
  std::string name;
  u64 offset = 0;  // of the address, in the function
};

// `offset`: from the beginning of the module in memory. nullopt: no file, not ELF, or no function
// there. Reads the file each time: for reports, which are few.
[[nodiscard]] std::optional<Symbol> find_symbol(const std::string& module, u64 offset);

}  // namespace verbena::abi
