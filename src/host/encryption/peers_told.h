// PeersTold: the peers of which the user has been told that no encryption was agreed: a line of
// standard error each, and not more than kMaxTold, as an attacker can cause them. Not thread-safe.
#pragma once

#include <set>
#include <string>

#include "wire/ib/gid.h"

namespace verbena::host {

class PeersTold {
 public:
  static constexpr std::size_t kMaxTold = 64;

  // Returns true if a line is due, and notes it.
  [[nodiscard]] bool add(const GID& peer) {
    return told_.size() < kMaxTold && told_.insert(peer.to_string()).second;
  }

 private:
  std::set<std::string> told_;
};

}  // namespace verbena::host
