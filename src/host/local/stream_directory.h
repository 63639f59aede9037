// StreamDirectory: the QP at an end of each TCP connection of this user and network namespace: a
// file beside that of Directory, with a place for each connection by its hash. If another
// connection has taken its place, a connection has no short cut. A process that finds a QP here
// asks its owner for confirmation (transport/local/published_qps.h), so stale entries of ended QPs
// have no effect.
#pragma once

#include <optional>

#include "base/types.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"
#include "transport/tcp_tuple.h"

namespace verbena::host {

class StreamDirectory {
 public:
  [[nodiscard]] static Expected<StreamDirectory> open();

  // `end`: the QP's view of its connection.
  [[nodiscard]] bool set(const TCPTuple& end, QPN qpn);
  [[nodiscard]] std::optional<QPN> find(const TCPTuple& end) const;

 private:
  explicit StreamDirectory(Descriptor file) : file_(std::move(file)) {}

  Descriptor file_;
};

}  // namespace verbena::host
