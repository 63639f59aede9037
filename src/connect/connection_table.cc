#include "connect/connection_table.h"

#include <algorithm>

#include "base/check.h"

namespace verbena {

ConnectionTable::RemoteKey ConnectionTable::remote_key(const CMConnection& connection) {
  return {connection.remote_gid.bytes, connection.remote_id.value};
}

ConnectionTable::QPKey ConnectionTable::qp_key(const GID& gid, GUID ca_guid, QPN qpn) {
  return {gid.bytes, ca_guid.value, qpn.value};
}

ConnectionTable::QPKey ConnectionTable::qp_key(const CMConnection& connection) {
  return qp_key(connection.remote_gid, connection.remote_ca_guid, connection.remote_qpn);
}

CMConnection& ConnectionTable::add(CommId local_id) {
  CHECK(!full());
  const auto [it, added] = by_local_id_.emplace(local_id.value, std::make_unique<CMConnection>());
  CHECK(added);
  it->second->local_id = local_id;
  return *it->second;
}

void ConnectionTable::remove(CMConnection& connection) {
  disarm(connection);
  unindex_qp(connection);
  if (connection.indexed_remote) by_remote_.erase(remote_key(connection));
  by_local_id_.erase(connection.local_id.value);
}

CMConnection* ConnectionTable::find(CommId local_id) {
  const auto it = by_local_id_.find(local_id.value);
  return it == by_local_id_.end() ? nullptr : it->second.get();
}

CMConnection* ConnectionTable::find_remote(const GID& remote_gid, CommId remote_id) {
  const auto it = by_remote_.find({remote_gid.bytes, remote_id.value});
  return it == by_remote_.end() ? nullptr : it->second;
}

CMConnection* ConnectionTable::find_qp(const GID& remote_gid, GUID remote_ca_guid, QPN remote_qpn) {
  const auto it = by_qp_.find(qp_key(remote_gid, remote_ca_guid, remote_qpn));
  return it == by_qp_.end() ? nullptr : it->second;
}

void ConnectionTable::index_remote(CMConnection& connection) {
  connection.indexed_remote = by_remote_.emplace(remote_key(connection), &connection).second;
  CHECK(connection.indexed_remote);
}

void ConnectionTable::index_qp(CMConnection& connection) {
  connection.indexed_qp = by_qp_.emplace(qp_key(connection), &connection).second;
  CHECK(connection.indexed_qp);
}

void ConnectionTable::unindex_qp(CMConnection& connection) {
  if (connection.indexed_qp) by_qp_.erase(qp_key(connection));
  connection.indexed_qp = false;
}

void ConnectionTable::arm(CMConnection& connection, Time deadline) {
  disarm(connection);
  connection.deadline = deadline;
  armed_.emplace(deadline, connection.local_id.value);
}

void ConnectionTable::linger(CMConnection& connection, Time until) {
  disarm(connection);
  connection.deadline = until;
  connection.lingering = true;
  lingering_.emplace(until, connection.local_id.value);
}

void ConnectionTable::disarm(CMConnection& connection) {
  const Deadline deadline(connection.deadline, connection.local_id.value);
  if (connection.lingering)
    lingering_.erase(deadline);
  else
    armed_.erase(deadline);
  connection.deadline = Time::never();
  connection.lingering = false;
}

Time ConnectionTable::next_deadline() const {
  Time next = Time::never();
  if (!armed_.empty()) next = armed_.begin()->first;
  if (!lingering_.empty()) next = std::min(next, lingering_.begin()->first);
  return next;
}

CMConnection* ConnectionTable::first_due(Time now) {
  if (!armed_.empty() && armed_.begin()->first <= now) return at(*armed_.begin());
  if (!lingering_.empty() && lingering_.begin()->first <= now) return at(*lingering_.begin());
  return nullptr;
}

CMConnection* ConnectionTable::first_lingering() {
  return lingering_.empty() ? nullptr : at(*lingering_.begin());
}

}  // namespace verbena
