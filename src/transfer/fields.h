// FieldWriter and FieldReader: integers (little endian) and short texts, one after another, as
// metadata and control messages have them. Reading past the end makes the reader bad, and every
// later value 0 or "".
#pragma once

#include <concepts>
#include <cstring>
#include <string>
#include <string_view>

#include "base/types.h"

namespace verbena::transfer {

class FieldWriter {
 public:
  template <std::unsigned_integral T>
  FieldWriter& put(T value) {
    for (std::size_t i = 0; i < sizeof value; ++i)
      bytes_ += static_cast<char>(static_cast<u64>(value) >> (8 * i) & 0xff);
    return *this;
  }
  // At most 65,535 bytes.
  FieldWriter& put(std::string_view text) {
    put(static_cast<u16>(text.size()));
    bytes_ += text;
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_{};
};

class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : left_(bytes) {}
  template <std::unsigned_integral T>
  [[nodiscard]] T get() {
    u64 value = 0;
    const std::string_view part = take(sizeof(T));
    for (std::size_t i = 0; i < part.size(); ++i) value |= u64{static_cast<u8>(part[i])} << (8 * i);
    return static_cast<T>(value);
  }
  [[nodiscard]] std::string text() { return std::string(take(get<u16>())); }
  [[nodiscard]] std::string_view rest() { return take(left_.size()); }
  [[nodiscard]] bool is_good() const { return good_; }
  [[nodiscard]] bool is_at_end() const { return good_ && left_.empty(); }

 private:
  std::string_view take(std::size_t length) {
    if (length > left_.size()) {
      good_ = false;
      left_ = {};
      return {};
    }
    const std::string_view part = left_.substr(0, length);
    left_.remove_prefix(length);
    return part;
  }
  std::string_view left_;
  bool good_ = true;
};

}  // namespace verbena::transfer
