// PeerWatch: notices that a process of this host is gone without goodbye, so that its connections
// end as they would if a kernel had closed them: with a DREQ, here made in its name. Peers on other
// hosts are not watched: a host that is gone says nothing either. Looks about once a second, and
// only while there is something to watch.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "wire/ib/cm/message.h"
#include "wire/ib/gid.h"

namespace verbena::host {

class PeerWatch {
 public:
  static constexpr Duration kInterval = sec(1);

  // Ours, and the peer's end. Both are on this host, at this address.
  struct Connection {
    GID address;
    CommId local_id, remote_id;
    QPN local_qpn;
  };
  void add(const Connection& connection, Time now);
  void set_qpn(CommId local_id, QPN qpn);
  void remove(CommId local_id) { connections_.erase(local_id); }

  [[nodiscard]] Time next_timer() const {
    return connections_.empty() ? Time::never() : next_look_;
  }
  // At or after next_timer(): those whose peers are gone; they are watched no longer.
  [[nodiscard]] std::vector<Connection> take_bereft(Time now);
  // Returns the MAD that the peer would have sent.
  [[nodiscard]] static cm::MADBytes farewell_to(const Connection& connection);

 private:
  std::unordered_map<CommId, Connection> connections_;
  Time next_look_;
};

}  // namespace verbena::host
