// Text files, read and written whole.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "cli/failure.h"

namespace verbena::cli {

// The file, or where it is not there, the same with ".gz" behind its name, unpacked.
[[nodiscard]] Expected<std::string> read_text(const std::filesystem::path& path);
[[nodiscard]] Expected<void> write_text(const std::filesystem::path& path, const std::string& text);
// What a gzip file (RFC 1952) holds; nullopt: it is damaged, or none.
[[nodiscard]] std::optional<std::string> unpacked(std::string_view gzip);

}  // namespace verbena::cli
