// The versioned dynamic symbols that a shared library defines, read from its file.
#pragma once

#include <set>
#include <string>

namespace verbena::test {

// "name@@VERSION" for a default version, "name@VERSION" for one that only old programs ask for.
// Empty: not a 64-bit ELF file with versions.
[[nodiscard]] std::set<std::string> defined_versions(const std::string& path);

}  // namespace verbena::test
