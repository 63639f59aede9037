// Text files, read and written whole.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "cli/failure.h"

namespace verbena::cli {

// Returns the text of the file. If the file does not exist, the function unpacks the file of that
// name with ".gz" appended. "-" is standard input. The text of standard input and of pipes, which
// can be read only once, is kept for later calls.
[[nodiscard]] Expected<std::string> read_text(const std::filesystem::path& path);
[[nodiscard]] Expected<void> write_text(const std::filesystem::path& path, const std::string& text);
// Returns the line without control characters, which a terminal would obey: each becomes \xNN. Tabs
// stay.
[[nodiscard]] std::string printable(std::string_view text);
// Makes the folder if it is missing. Returns an error if it is not writable.
[[nodiscard]] Expected<void> make_writable(const std::filesystem::path& folder);
// Returns the content of a gzip file (RFC 1952), or nullopt if it is damaged or no gzip file.
[[nodiscard]] std::optional<std::string> unpacked(std::string_view gzip);

}  // namespace verbena::cli
