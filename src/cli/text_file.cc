#include "cli/text_file.h"

#include <array>
#include <fstream>
#include <iterator>

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

}  // namespace

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
