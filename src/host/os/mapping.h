// Mapping: memory of this process that a file backs and others may map too: a range of someone's
// file (a dma-buf, a memfd), or a new anonymous one. Unmapped when it goes.
#pragma once

#include <cstddef>
#include <span>

#include "base/types.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"

namespace verbena::host {

enum class MapAccess { kRead, kReadWrite };

class Mapping {
 public:
  Mapping() = default;
  ~Mapping() { reset(); }
  Mapping(Mapping&& other) noexcept { *this = std::move(other); }
  Mapping& operator=(Mapping&& other) noexcept;

  // Zeros, on pages of their own.
  [[nodiscard]] static Expected<Mapping> create(std::size_t length);
  // The bytes [offset, offset + length) of `fd`, which stays the caller's. What a regular file does
  // not have is EINVAL.
  [[nodiscard]] static Expected<Mapping> of_file(int fd, u64 offset, std::size_t length,
                                                 MapAccess access);

  [[nodiscard]] u8* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  // A new descriptor of what create() made; -1 and errno.
  [[nodiscard]] int export_fd() const;

 private:
  void reset();

  u8* data_ = nullptr;  // `offset_in_page_` bytes behind the start of a page
  std::size_t size_ = 0;
  std::size_t offset_in_page_ = 0;
  Descriptor file_;
};

}  // namespace verbena::host
