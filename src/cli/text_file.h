// Text files, read and written whole.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "cli/failure.h"

namespace verbena::cli {

// The file, or where it is not there, the same with ".gz" behind its name, unpacked. "-" is
// standard input. What can be read once only (that, and pipes) is kept for the next time.
[[nodiscard]] Expected<std::string> read_text(const std::filesystem::path& path);
[[nodiscard]] Expected<void> write_text(const std::filesystem::path& path, const std::string& text);
// A line of text without control characters, which a file may have and a terminal would obey: each
// is \xNN. Tabs stay.
[[nodiscard]] std::string printable(std::string_view text);
// Makes the folder where it is missing. An error: it cannot be written to.
[[nodiscard]] Expected<void> make_writable(const std::filesystem::path& folder);
// What a gzip file (RFC 1952) holds; nullopt: it is damaged, or none.
[[nodiscard]] std::optional<std::string> unpacked(std::string_view gzip);

}  // namespace verbena::cli
