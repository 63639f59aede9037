// BLAKE3, the hash: 32 bytes of any number of bytes. Sixteen chunks of 1 KiB are hashed side by
// side by vector instructions, as the processor has them.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/types.h"

namespace verbena::transfer {

using Hash = std::array<u8, 32>;

[[nodiscard]] Hash blake3(std::span<const u8> bytes);
[[nodiscard]] std::string to_hex(const Hash& hash);
[[nodiscard]] std::optional<Hash> hash_from_hex(std::string_view text);  // nullopt if it is no hash

}  // namespace verbena::transfer
