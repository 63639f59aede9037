// SteadySource: the source of all of the last datagrams that came to a socket, if it is one.
#pragma once

#include "base/types.h"
#include "wire/ib/gid.h"

namespace verbena::host {

struct DatagramSource {
  GID address{};
  u16 port = 0;
  u8 hop_limit = 0;  // of the last datagram
};

class SteadySource {
 public:
  static constexpr u32 kSteady = 100;  // datagrams in a row

  void note(const DatagramSource& source) {
    if (source.port != last_.port || source.address != last_.address) in_a_row_ = 0;
    ++in_a_row_;
    last_ = source;
  }
  [[nodiscard]] bool is_steady() const { return in_a_row_ >= kSteady; }
  [[nodiscard]] const DatagramSource& last() const { return last_; }

 private:
  DatagramSource last_;
  u32 in_a_row_ = 0;
};

}  // namespace verbena::host
