// BufferPool: registered buffers for the data of commands, in two sizes. A command that finds none
// waits; the target asks again whenever one is given back.
#pragma once

#include <optional>
#include <vector>

#include "application/node.h"
#include "base/check.h"

namespace verbena::nvmf {

class BufferPool {
 public:
  static constexpr u32 kSmallBytes = 16 * 1024;

  struct Buffer {
    u64 address = 0;
    u8* bytes = nullptr;  // nullptr: counted
    u32 l_key = 0;
    bool is_small = false;
  };

  BufferPool(application::Node& node, application::Content content, u32 small, u32 large,
             u32 large_bytes)
      : large_bytes_(large_bytes) {
    add(node, content, small, kSmallBytes, small_);
    add(node, content, large, large_bytes, large_);
    for (Buffer& buffer : small_) buffer.is_small = true;
  }

  // Returns nullopt if all buffers of the size are in use. `bytes` is at most `large_bytes`.
  [[nodiscard]] std::optional<Buffer> take(u32 bytes) {
    CHECK(bytes <= large_bytes_);
    std::vector<Buffer>& from = bytes <= kSmallBytes && !small_.empty() ? small_ : large_;
    if (from.empty()) return std::nullopt;
    const Buffer buffer = from.back();
    from.pop_back();
    return buffer;
  }
  void give_back(const Buffer& buffer) { (buffer.is_small ? small_ : large_).push_back(buffer); }

 private:
  static void add(application::Node& node, application::Content content, u32 count, u32 bytes,
                  std::vector<Buffer>& to) {
    const auto region = node.allocate(u64{count} * bytes, content, application::Access::kLocal);
    CHECK(region.has_value());
    for (u32 i = count; i > 0; --i) {
      const u64 offset = u64{i - 1} * bytes;
      to.push_back({region->address + offset,
                    region->bytes.empty() ? nullptr : region->bytes.data() + offset, region->l_key,
                    false});
    }
  }

  const u32 large_bytes_;
  std::vector<Buffer> small_, large_;
};

}  // namespace verbena::nvmf
