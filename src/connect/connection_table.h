// ConnectionTable: the connections of one CMAgent, found by our ID, by the peer's ID and by the
// peer's QP, and ordered by deadline. Bounded; one allocation for a connection. The maps are
// ordered, so that no peer can choose keys that collide, and every run has the same order.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "connect/cm_connection.h"

namespace verbena {

class ConnectionTable {
 public:
  explicit ConnectionTable(u32 capacity) : capacity_(capacity) {}

  [[nodiscard]] std::size_t size() const { return by_local_id_.size(); }
  [[nodiscard]] bool full() const { return size() >= capacity_; }

  // Precondition: `local_id` is free and the table is not full.
  CMConnection& add(CommId local_id);
  void remove(CMConnection& connection);

  [[nodiscard]] CMConnection* find(CommId local_id);
  [[nodiscard]] CMConnection* find_remote(const GID& remote_gid, CommId remote_id);
  // Finds the connection whose QP the peer may still use.
  [[nodiscard]] CMConnection* find_qp(const GID& remote_gid, GUID remote_ca_guid, QPN remote_qpn);

  // From now on find_remote() by remote_gid and remote_id returns it. Precondition: no other
  // connection in the table has both.
  void index_remote(CMConnection& connection);
  void index_qp(CMConnection& connection);
  void unindex_qp(CMConnection& connection);

  // Each connection has one deadline. A lingering connection has ended: it may be evicted for a new
  // one.
  void arm(CMConnection& connection, Time deadline);
  void linger(CMConnection& connection, Time until);
  void disarm(CMConnection& connection);
  [[nodiscard]] Time next_deadline() const;
  [[nodiscard]] CMConnection* first_due(Time now);  // nullptr: none
  [[nodiscard]] CMConnection* first_lingering();    // the one nearest to its end; nullptr: none

 private:
  using RemoteKey = std::pair<std::array<u8, 16>, u32>;
  using QPKey = std::tuple<std::array<u8, 16>, u64, u32>;
  using Deadline = std::pair<Time, u32>;  // and our ID

  static RemoteKey remote_key(const CMConnection& connection);
  static QPKey qp_key(const GID& gid, GUID ca_guid, QPN qpn);
  static QPKey qp_key(const CMConnection& connection);
  CMConnection* at(const Deadline& deadline) { return find(CommId{deadline.second}); }

  std::map<u32, std::unique_ptr<CMConnection>> by_local_id_;
  std::map<RemoteKey, CMConnection*> by_remote_;
  std::map<QPKey, CMConnection*> by_qp_;
  std::set<Deadline> armed_, lingering_;
  u32 capacity_;
};

}  // namespace verbena
