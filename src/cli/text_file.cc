#include "cli/text_file.h"

#include <unistd.h>
#include <array>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <mutex>

#include <fmt/format.h>
#include <isa-l/igzip_lib.h>

#include "base/types.h"

namespace verbena::cli {
namespace {

std::optional<std::string> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return std::nullopt;
  return bytes;
}

// ReadOnce: the texts of files that can be read only once, by path. Several threads may use it.
class ReadOnce {
 public:
  std::optional<std::string> read(const std::filesystem::path& path) {
    const std::lock_guard lock(mutex_);
    const auto known = texts_.find(path);
    if (known != texts_.end()) return known->second;
    std::optional<std::string> text = path == "-" ? read_standard_input() : read_bytes(path);
    if (text) texts_[path] = *text;
    return text;
  }

 private:
  static std::optional<std::string> read_standard_input() {
    std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    if (std::cin.bad()) return std::nullopt;
    return text;
  }

  std::mutex mutex_;
  std::map<std::filesystem::path, std::string> texts_;
};

ReadOnce& once() {
  static ReadOnce all;
  return all;
}

bool can_be_read_once(const std::filesystem::path& path) {
  std::error_code none;
  return path == "-" || std::filesystem::is_fifo(path, none) ||
         std::filesystem::is_character_file(path, none) || std::filesystem::is_socket(path, none);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out;
}

Expected<void> make_writable(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return cannot(fmt::format("cannot make {}: {}", folder.string(), error.message()));
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return cannot(fmt::format("cannot write to {}", folder.string()));
}

std::optional<std::string> unpacked(std::string_view gzip) {
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_GZIP;
  state.next_in = reinterpret_cast<u8*>(const_cast<char*>(gzip.data()));
  state.avail_in = static_cast<u32>(gzip.size());
  std::string text;
  std::array<u8, 65536> piece;
  do {
    state.next_out = piece.data();
    state.avail_out = static_cast<u32>(piece.size());
    if (isal_inflate(&state) != ISAL_DECOMP_OK) return std::nullopt;
    const std::size_t got = piece.size() - state.avail_out;
    text.append(reinterpret_cast<const char*>(piece.data()), got);
    if (got == 0 && state.block_state != ISAL_BLOCK_FINISH) return std::nullopt;  // cut short
  } while (state.block_state != ISAL_BLOCK_FINISH);
  return text;
}

Expected<std::string> read_text(const std::filesystem::path& path) {
  if (can_be_read_once(path)) {
    if (std::optional<std::string> text = once().read(path)) return *std::move(text);
    return failure(kExitCannot, fmt::format("{} cannot be read", path.string()));
  }
  if (std::filesystem::is_regular_file(path)) {
    if (std::optional<std::string> text = read_bytes(path)) return *std::move(text);
    return failure(kExitCannot, fmt::format("{} cannot be read", path.string()));
  }
  const std::filesystem::path packed = path.string() + ".gz";
  const std::optional<std::string> bytes = read_bytes(packed);
  if (!bytes)
    return failure(kExitCannot,
                   fmt::format("{} is not there, nor {}", path.string(), packed.string()));
  if (std::optional<std::string> text = unpacked(*bytes)) return *std::move(text);
  return failure(kExitCannot, fmt::format("{} is no gzip file, or damaged", packed.string()));
}

Expected<void> write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return {};
  return failure(kExitCannot, fmt::format("cannot write {}", path.string()));
}

}  // namespace verbena::cli
