// IOCursor: a walk through the bytes of an iovec array, some at a time.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "abi/rdmacm/results.h"

namespace verbena::rdmacm::rsocket {

class IOCursor {
 public:
  explicit IOCursor(std::span<const iovec> parts) : parts_(parts) {
    for (const iovec& part : parts) left_ += part.iov_len;
  }

  [[nodiscard]] std::size_t left() const { return left_; }  // bytes

  // Out of the program's memory, and into it. At most left().
  void read(u8* to, std::size_t length) {
    walk(length, [&](u8* at, std::size_t n) { std::memcpy(to, at, n), to += n; });
  }
  void write(const u8* from, std::size_t length) {
    walk(length, [&](u8* at, std::size_t n) { std::memcpy(at, from, n), from += n; });
  }

 private:
  template <typename Copy>
  void walk(std::size_t length, Copy copy) {
    left_ -= length;
    while (length != 0) {
      const std::size_t n = std::min(length, parts_.front().iov_len - offset_);
      if (n != 0) copy(static_cast<u8*>(parts_.front().iov_base) + offset_, n);
      length -= n;
      offset_ += n;
      if (offset_ < parts_.front().iov_len) return;
      parts_ = parts_.subspan(1);
      offset_ = 0;
    }
  }

  std::span<const iovec> parts_;
  std::size_t offset_ = 0, left_ = 0;
};

}  // namespace verbena::rdmacm::rsocket
