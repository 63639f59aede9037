#include "transfer/list.h"

#include <algorithm>

namespace verbena::transfer {
namespace {

// Saturates, so that lists that overflow cannot look equal to short ones.
u64 total_bytes(std::span<const Block> blocks) {
  u64 total = 0;
  for (const Block& block : blocks)
    if (__builtin_add_overflow(total, block.length, &total)) return ~u64{0};
  return total;
}

bool is_adjacent(const Copy& before, const Copy& after) {
  return before.local_region == after.local_region && before.remote_region == after.remote_region &&
         before.local + before.length == after.local &&
         before.remote + before.length == after.remote;
}

// A position in a list, never at the end of a block.
class BlockCursor {
 public:
  explicit BlockCursor(std::span<const Block> blocks) : blocks_(blocks) { skip_empty(); }
  [[nodiscard]] bool at_end() const { return blocks_.empty(); }
  [[nodiscard]] u64 address() const { return blocks_[0].address + offset_; }
  [[nodiscard]] u32 region() const { return blocks_[0].region; }
  [[nodiscard]] u64 left() const { return blocks_[0].length - offset_; }
  void advance(u64 bytes) {
    offset_ += bytes;
    if (offset_ < blocks_[0].length) return;
    blocks_ = blocks_.subspan(1);
    offset_ = 0;
    skip_empty();
  }

 private:
  void skip_empty() {
    while (!blocks_.empty() && blocks_[0].length == 0) blocks_ = blocks_.subspan(1);
  }
  std::span<const Block> blocks_;
  u64 offset_ = 0;
};

}  // namespace

Expected<std::vector<Copy>> pair_lists(std::span<const Block> local,
                                       std::span<const Block> remote) {
  const u64 here = total_bytes(local), there = total_bytes(remote);
  if (here == ~u64{0} || there == ~u64{0})
    return tl::unexpected<std::string>("a list is longer than 2^64 bytes");
  if (here != there)
    return tl::unexpected("the local list has " + std::to_string(here) + " bytes, the remote one " +
                          std::to_string(there));
  std::vector<Copy> copies;
  copies.reserve(std::max(local.size(), remote.size()));
  for (BlockCursor from(local), to(remote); !from.at_end();) {
    const Copy copy{.local = from.address(),
                    .remote = to.address(),
                    .length = std::min(from.left(), to.left()),
                    .local_region = from.region(),
                    .remote_region = to.region()};
    from.advance(copy.length);
    to.advance(copy.length);
    if (!copies.empty() && is_adjacent(copies.back(), copy))
      copies.back().length += copy.length;
    else
      copies.push_back(copy);
  }
  return copies;
}

u64 bytes_of(std::span<const Copy> copies) {
  u64 total = 0;
  for (const Copy& copy : copies) total += copy.length;
  return total;
}

}  // namespace verbena::transfer
