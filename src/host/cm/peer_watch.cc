#include "host/cm/peer_watch.h"

#include "connect/comm_id_space.h"
#include "host/sharing/process_channel.h"

namespace verbena::host {

void PeerWatch::add(const Connection& connection, Time now) {
  if (connections_.empty()) next_look_ = now + kInterval;
  connections_[connection.local_id] = connection;
}

void PeerWatch::set_qpn(CommId local_id, QPN qpn) {
  const auto found = connections_.find(local_id);
  if (found != connections_.end()) found->second.local_qpn = qpn;
}

std::vector<PeerWatch::Connection> PeerWatch::take_bereft(Time now) {
  std::vector<Connection> bereft;
  if (now < next_timer()) return bereft;
  next_look_ = now + kInterval;
  std::unordered_map<u32, bool> alive;  // by slot
  for (const auto& [id, connection] : connections_) {
    const u32 slot = process_slot_of(connection.remote_id).value;
    const auto [known, is_new] = alive.try_emplace(slot, false);
    if (is_new) known->second = ProcessChannel::is_alive(slot);
    if (!known->second) bereft.push_back(connection);
  }
  for (const Connection& connection : bereft) remove(connection.local_id);
  return bereft;
}

cm::MADBytes PeerWatch::farewell_to(const Connection& connection) {
  const cm::DREQ dreq{.local_comm_id = connection.remote_id,
                      .remote_comm_id = connection.local_id,
                      .remote_qpn = connection.local_qpn};
  return cm::Message{.transaction_id = connection.remote_id.value, .body = dreq}.encode();
}

}  // namespace verbena::host
