// Descriptor lists: the memory of one transfer, on this side and on the peer's, as lists of blocks.
// pair_lists() turns two lists into the copies that work requests do.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "base/types.h"

namespace verbena::transfer {

// The reason is one line of text.
template <typename T>
using Expected = tl::expected<T, std::string>;

struct Block {
  u64 address = 0;
  u64 length = 0;
  u32 region = 0;  // an index into the owner's regions
  friend bool operator==(const Block&, const Block&) = default;
};

// `length` bytes between `local` and `remote`. The operation says in which direction.
struct Copy {
  u64 local = 0, remote = 0;
  u64 length = 0;
  u32 local_region = 0, remote_region = 0;
  friend bool operator==(const Copy&, const Copy&) = default;
};

// Pairs the bytes of both lists in order, wherever their blocks begin and end. Joins copies that
// are adjacent on both sides. Blocks of no bytes vanish. Fails if the totals differ.
[[nodiscard]] Expected<std::vector<Copy>> pair_lists(std::span<const Block> local,
                                                     std::span<const Block> remote);
[[nodiscard]] u64 bytes_of(std::span<const Copy> copies);

}  // namespace verbena::transfer
