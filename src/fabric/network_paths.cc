// The paths that a Network notes for reports: path_log.h
#include <algorithm>

#include "fabric/network.h"

namespace verbena::fabric {

void PathLog::note(const Frame& frame, u16 port) {
  const u64 entry = entry_of({frame.source, frame.destination, frame.source_port}, port);
  if (entry == last_) return;
  last_ = entry;
  if (entries_.size() < kMostEntries) entries_.insert(entry);
}

void Network::log_paths() {
  path_logs_.resize(switches_.size());
  for (NodeIndex node = 0; node < switches_.size(); ++node) {
    if (ports_of(node) < 2) continue;
    path_logs_[node] = std::make_unique<PathLog>();
    if (switches_[node] != nullptr)
      switches_[node]->set_path_log(path_logs_[node].get());
    else
      hosts_[node]->set_path_log(path_logs_[node].get());
  }
}

// Node by node from the source; the ports of a node in their order.
std::vector<PathHop> Network::path_of(const PathKey& key) const {
  std::vector<PathHop> hops;
  std::vector<NodeIndex> reached = {key.source};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const NodeIndex node = reached[i];
    if (node == key.destination) continue;
    for (u32 number = 0; number < ports_of(node); ++number) {
      const PathLog* const log = path_logs_[node].get();
      if (log != nullptr && !log->has(key, static_cast<u16>(number))) continue;
      hops.push_back({node, number});
      const NodeIndex next = node_of(port(node, number).peer);
      if (std::ranges::find(reached, next) == reached.end()) reached.push_back(next);
    }
  }
  return hops;
}

std::vector<PathHop> Network::path_of_flow(u32 flow) const {
  if (path_logs_.empty() || flow >= flow_ports_.size()) return {};
  const Flow& ends = flows_[flow];
  return path_of({ends.source, ends.destination, flow_ports_[flow]});
}

std::vector<PathHop> Network::path_of_connection(u32 connection) const {
  if (path_logs_.empty() || connection >= connection_ports_.size()) return {};
  const ConnectionConfig& ends = connections_[connection];
  return path_of({ends.source, ends.destination, connection_ports_[connection]});
}

void Network::note_source_port(std::vector<u16>& ports, u32 number, NodeIndex source,
                               EndNumber end) {
  if (path_logs_.empty()) return;
  if (ports.size() <= number) ports.resize(number + 1);
  ports[number] = hosts_[source]->source_port_of(end);
}

}  // namespace verbena::fabric
