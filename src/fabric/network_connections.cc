// The connections of a Network that an application sends by: application.h
#include <algorithm>

#include "fabric/network.h"
#include "wire/roce/source_port.h"

namespace verbena::fabric {

bool Network::connect(const ConnectionConfig& config) {
  if (!plan_connection(config)) return false;
  make_ends(static_cast<u32>(connections_.size() - 1));
  return true;
}

bool Network::plan_connection(const ConnectionConfig& config) {
  if (routes_.ports(config.source, config.destination).empty()) return false;
  connections_.push_back(config);
  connection_senders_.push_back(kNoEnd);
  connection_receivers_.push_back(kNoEnd);
  connection_is_shut_.push_back(1);
  return true;
}

u16 Network::source_port_for(NodeIndex source, NodeIndex destination, u32 port, u32 which) const {
  constexpr u32 kSourcePorts = 0x4000;  // from the first dynamic one
  FlowTuple flow{.source_address = addresses_[source],
                 .destination_address = addresses_[destination],
                 .source_port = 0,
                 .destination_port = 4791};
  for (u32 place = 0, found = 0;; ++place) {
    flow.source_port = static_cast<u16>(kFirstSourcePort + place % kSourcePorts);
    if (flow_hash(flow, source) % ports_of(source) == port && found++ == which)
      return flow.source_port;
  }
}

void Network::make_ends(u32 connection) {
  const ConnectionConfig& config = connections_[connection];
  Endpoint& destination = *hosts_[config.destination];
  const EndNumber sender = hosts_[config.source]->create_end(config.depth, 1);
  const EndNumber receiver = destination.create_end(1, config.depth);
  join({.source = config.source,
        .destination = config.destination,
        .priority = config.priority,
        .source_port = config.source_port,
        .destination_port = config.destination_port},
       sender, receiver);
  note_source_port(connection_ports_, connection, config.source, sender);
  destination.expect(receiver, config.depth, connection);
  connection_senders_[connection] = sender;
  connection_receivers_[connection] = receiver;
  connection_is_shut_[connection] = 0;
}

void Network::open_connection(u32 connection) {
  if (connection_is_shut_[connection] != 0)
    domain_of_sender(connection)
        .requests.push_back({.kind = ConnectionRequest::Kind::kOpen, .connection = connection});
}

void Network::close_connection(u32 connection) {
  CHECK(connection_is_shut_[connection] == 0);
  connection_is_shut_[connection] = 1;
  domain_of_sender(connection)
      .requests.push_back({.kind = ConnectionRequest::Kind::kClose, .connection = connection});
}

void Network::send(u32 connection, u32 bytes, u32 word) {
  CHECK(bytes <= ConnectionConfig::kMaxMessageBytes);
  if (connection_is_shut_[connection] != 0)
    return domain_of_sender(connection)
        .requests.push_back({.kind = ConnectionRequest::Kind::kSend,
                             .connection = connection,
                             .bytes = bytes,
                             .word = word});
  hosts_[connections_[connection].source]->send_message(connection_senders_[connection], bytes,
                                                        connection, word);
}

// Executes the requests that hosts made in the window that ends, or between runs: host after host,
// whichever domains they are in.
void Network::do_requests(Time now) {
  std::vector<ConnectionRequest> requests;
  for (const auto& domain : domains_) {
    requests.insert(requests.end(), domain->requests.begin(), domain->requests.end());
    domain->requests.clear();
  }
  if (requests.empty()) return;
  std::ranges::stable_sort(requests, {}, [this](const ConnectionRequest& request) {
    return connections_[request.connection].source;
  });
  for (const auto& domain : domains_) domain->now = now;
  for (const ConnectionRequest& request : requests) do_request(request);
}

void Network::do_request(const ConnectionRequest& request) {
  const u32 number = request.connection;
  const ConnectionConfig& config = connections_[number];
  EndNumber& sender = connection_senders_[number];
  if (request.kind == ConnectionRequest::Kind::kClose) {
    hosts_[config.source]->destroy_end(sender);
    hosts_[config.destination]->destroy_end(connection_receivers_[number]);
    sender = kNoEnd;
    return;
  }
  if (sender == kNoEnd) make_ends(number);
  if (request.kind == ConnectionRequest::Kind::kSend)
    hosts_[config.source]->send_message(sender, request.bytes, number, request.word);
}

}  // namespace verbena::fabric
