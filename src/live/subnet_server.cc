#include "live/subnet_server.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/bytes.h"
#include "wire/ib/bth.h"

namespace verbena::live {
namespace {

// Locally administered. A node's ports have the numbers behind it.
constexpr u64 kFirstGUID = 0x0256'4500'0000'0100;
constexpr u64 kGUIDsOfNode = 0x100;
constexpr u32 kNoNode = ~u32{0};
constexpr Duration kErrorWatch = ms(100);  // between two looks at the links' errors
constexpr u16 kMembership = 0x8000;        // of a P_Key: a full member

u32 qp_of(const fabric::LivePacket& packet) {
  return load_be24(packet.bytes.data() + BTH::kDestQPAt);
}
u16 p_key_of(const fabric::LivePacket& packet) { return load_be16(packet.bytes.data() + 2); }

u8 mtu_code_of(u32 bytes) {
  u8 code = 1;
  while (code < 5 && (128u << (code + 1)) <= bytes) ++code;
  return code;
}

}  // namespace

SubnetServer::SubnetServer(fabric::LiveFabric& fabric)
    : fabric_(fabric),
      scenario_(fabric.scenario()),
      host_of_node_(scenario_.plan.topology.nodes),
      node_of_lid_(kFirstMulticastLID, kNoNode) {
  add_nodes();
  add_links();
  for (u32 host = 0; host < scenario_.plan.hosts.size(); ++host)
    host_of_node_[scenario_.plan.hosts[host]] = host;
  while (subnet_.poll_event()) {  // events from before the programs connected
  }
}

void SubnetServer::add_nodes() {
  const fabric::Topology& topology = scenario_.plan.topology;
  std::vector<u32> ports(topology.nodes);
  for (const fabric::TopologyLink& link : topology.links) {
    ++ports[link.a];
    ++ports[link.b];
  }
  const fabric::InfiniBandConfig& config = scenario_.network.infiniband;
  for (u32 node = 0; node < topology.nodes; ++node)
    (void)subnet_.add_node({.type = topology.is_switch[node] ? management::NodeType::kSwitch
                                                             : management::NodeType::kCA,
                            .guid = kFirstGUID + node * kGUIDsOfNode,
                            .description = scenario_.plan.names[node],
                            .ports = static_cast<u8>(ports[node]),
                            .virtual_lanes = static_cast<u8>(config.lanes),
                            .mtu = mtu_code_of(config.mtu_bytes)});
}

// A node's ports are numbered in the order of its links; InfiniBand counts them from 1.
void SubnetServer::add_links() {
  std::vector<u8> next(scenario_.plan.topology.nodes, 1);
  for (const fabric::TopologyLink& link : scenario_.plan.topology.links) {
    links_.push_back({PortPlace{link.a, next[link.a]++}, PortPlace{link.b, next[link.b]++}});
    subnet_.join(links_.back()[0], links_.back()[1],
                 management::link_kind_of(link.config.rate.bps()));
  }
}

void SubnetServer::close_port(u32 client, Time now) {
  agents_.close(client);
  for (u32 host = 0; host < scenario_.plan.hosts.size(); ++host)
    subnet_.set_manager(place_of(host), agents_.has_manager(place_of(host)), now);
  pump(now);
}

int SubnetServer::on_register(const host::FabricMADRegister& request, Time now) {
  using Registration = management::MADAgents::Registration;
  if (request.registers == 0) {
    agents_.remove(request.client, request.agent);
    return 0;
  }
  const Registration done =
      agents_.add(request.client, request.agent,
                  {request.mgmt_class, request.class_version, request.method_mask, request.oui});
  if (done == Registration::kTaken) return EBUSY;
  if (done == Registration::kInvalid) return EINVAL;
  for (u32 host = 0; host < scenario_.plan.hosts.size(); ++host)
    subnet_.set_manager(place_of(host), agents_.has_manager(place_of(host)), now);
  pump(now);
  return 0;
}

void SubnetServer::on_mad(u32 client, const host::FabricMAD& header, std::vector<u8> mad,
                          Time now) {
  management::Datagram datagram;
  datagram.message_bytes = static_cast<u32>(mad.size());
  if (mad.size() < kMADSize) mad.resize(kMADSize);
  if (!management::has_active_rmpp(mad)) {
    mad.resize(kMADSize);
    datagram.message_bytes = kMADSize;
  }
  datagram.dlid = header.lid;
  datagram.service_level = header.service_level;
  datagram.p_key_index = header.p_key_index;
  datagram.source_qp = header.qp == 0 ? 0 : 1;  // QP 0 sends to QP 0, QP 1 to all others
  datagram.destination_qp = header.qp;
  datagram.q_key = header.q_key;
  datagram.mad = std::move(mad);
  if (static_cast<MgmtClass>(datagram.mad[1]) == MgmtClass::kPerf) read_counters();
  agents_.send(client, header.agent, std::move(datagram), ms(header.timeout_ms), header.retries,
               now);
  pump(now);
}

host::FabricPortAttributes SubnetServer::attributes_of(u32 host) const {
  using namespace management::port_info;
  const PortPlace at = place_of(host);
  const management::NodePort& port = subnet_.port(at);
  host::FabricPortAttributes attributes;
  attributes.node_guid = subnet_.node(at.node).config.guid;
  attributes.port_guid = port.guid;
  attributes.gid_prefix = port[kGIDPrefix];
  attributes.capability_mask = static_cast<u32>(port[kCapabilityMask]);
  attributes.lid = port.lid();
  attributes.sm_lid = static_cast<u16>(port[kMasterSMLID]);
  attributes.lmc = static_cast<u8>(port[kLMC]);
  attributes.sm_sl = static_cast<u8>(port[kMasterSMSL]);
  attributes.state = static_cast<u8>(port.state());
  attributes.physical_state = static_cast<u8>(port.physical_state());
  attributes.width = static_cast<u8>(port[kLinkWidthActive]);
  attributes.speed = static_cast<u8>(port[kLinkSpeedActive]);
  attributes.ext_speed = static_cast<u8>(port[kLinkSpeedExtActive]);
  attributes.mtu = static_cast<u8>(port[kNeighborMTU]);
  attributes.mtu_cap = static_cast<u8>(port[kMTUCap]);
  attributes.lanes = static_cast<u8>(port[kVLCap]);
  attributes.subnet_timeout = static_cast<u8>(port[kSubnetTimeOut]);
  attributes.p_key_violations = static_cast<u16>(port[kPKeyViolations]);
  attributes.q_key_violations = static_cast<u16>(port[kQKeyViolations]);
  std::ranges::copy(port.p_keys, attributes.p_keys.begin());
  return attributes;
}

// Passes packets from the agents to the subnet, and deliveries of the subnet to the agents.
void SubnetServer::pump(Time now) {
  for (bool any = true; any;) {
    any = false;
    while (std::optional<management::Delivery> out = agents_.poll_to_send()) {
      subnet_.send(out->at, std::move(out->datagram), now);
      any = true;
    }
    while (std::optional<management::Delivery> in = subnet_.poll_delivery()) {
      agents_.deliver(std::move(*in), now);
      any = true;
    }
  }
}

void SubnetServer::on_timer(Time now) {
  agents_.on_timer(now);
  subnet_.on_timer(now);
  watch_errors(now);
  pump(now);
}

Time SubnetServer::next_timer() const {
  const Time watch = has_errors_ ? next_watch_ : Time::never();
  return std::min({agents_.next_timer(), subnet_.next_timer(), watch});
}

std::optional<management::ReceivedMAD> SubnetServer::poll_received() {
  return agents_.poll_received();
}

std::optional<SubnetServer::Change> SubnetServer::poll_change() {
  const std::optional<management::PortEvent> event = subnet_.poll_event();
  if (!event) return std::nullopt;
  return Change{host_of_node_[event->at.node], event->changes.client_reregister};
}

// --- packets

bool SubnetServer::admit_sent(u32 host, u8 service_level, fabric::LivePacket& packet) {
  apply_tables();
  const management::NodePort& port = subnet_.port(place_of(host));
  if (port.state() != management::PortState::kActive || !port.has_lid(packet.slid)) return false;
  const bool is_multicast = packet.dlid >= kFirstMulticastLID;
  const u32 to = is_multicast ? packet.source : node_of_lid_[packet.dlid];
  if (to == kNoNode) return false;
  packet.destination = to;
  const u8 lane = subnet_.node(packet.source).lane_for(service_level, 0, 1);
  packet.priority = static_cast<u8>(lane % scenario_.network.infiniband.lanes);
  return true;
}

bool SubnetServer::admit_received(u32 host, const fabric::LivePacket& packet, Time now) {
  const PortPlace at = place_of(host);
  const management::NodePort& port = subnet_.port(at);
  if (port.state() != management::PortState::kActive) return false;
  if (packet.dlid < kFirstMulticastLID && !port.has_lid(packet.dlid)) return false;
  // Equal but for the membership, of which one at least is full. IBTA 10.9.3
  const u16 key = p_key_of(packet);
  const bool is_member = std::ranges::any_of(port.p_keys, [key](u16 own) {
    return (own & ~kMembership) != 0 && ((own ^ key) & ~kMembership) == 0 &&
           ((own | key) & kMembership) != 0;
  });
  if (!is_member) {
    subnet_.on_p_key_violation(at, key, packet.slid, 0, qp_of(packet), now);
    pump(now);
  }
  return is_member;
}

void SubnetServer::apply_tables() {
  if (!subnet_.take_changed()) return;
  std::ranges::fill(node_of_lid_, kNoNode);
  for (const fabric::NodeIndex node : scenario_.plan.hosts) {
    const management::NodePort& port = subnet_.port({node, 1});
    if (port.lid() == 0) continue;
    const u32 count = 1u << port[management::port_info::kLMC];
    for (u32 lid = port.lid(); lid < std::min<u32>(port.lid() + count, kFirstMulticastLID); ++lid)
      node_of_lid_[lid] = node;
  }
  for (u32 node = 0; node < subnet_.size(); ++node)
    if (subnet_.node(node).is_switch()) apply_tables_of(node);
}

// Only active ports forward data.
void SubnetServer::apply_tables_of(u32 node) {
  using fabric::ManagedTables;
  const management::Node& its = subnet_.node(node);
  std::vector<bool> is_active(its.ports.size());
  for (u32 port = 1; port < its.ports.size(); ++port)
    is_active[port] = its.ports[port].state() == management::PortState::kActive;
  std::vector<u16> unicast(its.linear_forwarding.size(), u16{ManagedTables::kNoPort});
  for (std::size_t lid = 0; lid < unicast.size(); ++lid) {
    const u8 port = its.linear_forwarding[lid];
    if (port != 0 && port < its.ports.size() && is_active[port])
      unicast[lid] = static_cast<u16>(port - 1);
  }
  const auto entries = static_cast<u16>(its.multicast_entries());
  std::vector<std::vector<u16>> multicast(entries);
  for (u16 group = 0; group < entries; ++group)
    for (u8 port = 1; port < its.ports.size(); ++port)
      if (is_active[port] &&
          its.forwards_multicast(static_cast<u16>(kFirstMulticastLID + group), port))
        multicast[group].push_back(static_cast<u16>(port - 1));
  fabric_.set_tables(node, std::move(unicast), std::move(multicast));
}

void SubnetServer::set_link(u32 link, bool up, Time now) {
  fabric_.set_link(link, up);
  subnet_.set_plugged(links_[link][0], up, now);
  pump(now);
}

void SubnetServer::set_error_rate(u32 link, double rate) {
  fabric_.set_error_rate(link, rate);
  has_errors_ = true;
}

void SubnetServer::overrun(u32 link, Time now) {
  for (const PortPlace end : links_[link]) subnet_.on_buffer_overrun(end, now);
  pump(now);
}

void SubnetServer::stall_credits(u32 link, Time now) {
  for (const PortPlace end : links_[link]) subnet_.on_flow_control_timeout(end, now);
  pump(now);
}

void SubnetServer::set_power(u32 node, bool on, Time now) {
  for (u32 link = 0; link < links_.size(); ++link)
    if (links_[link][0].node == node || links_[link][1].node == node) fabric_.set_link(link, on);
  subnet_.set_power(node, on, now);
  pump(now);
}

void SubnetServer::watch_errors(Time now) {
  if (!has_errors_ || now < next_watch_) return;
  next_watch_ = now + kErrorWatch;
  for (const std::array<PortPlace, 2>& link : links_)
    for (const PortPlace at : link) {
      management::PortTraffic traffic = subnet_.port(at).traffic;
      const u64 before = traffic.symbol_errors;
      const u64 errors = fabric_.network().corrupted_packets(at.node, at.port - 1u);
      if (errors == before) continue;
      traffic.symbol_errors = traffic.receive_errors = errors;
      subnet_.set_traffic(at, traffic);
      subnet_.on_link_errors(at, errors - before, now);
    }
}

// Both ends of a link: what one has sent, the other has received.
void SubnetServer::read_counters() {
  const fabric::Network& network = fabric_.network();
  for (const std::array<PortPlace, 2>& link : links_)
    for (const u32 end : {0u, 1u}) {
      const PortPlace at = link[end], peer = link[1 - end];
      management::PortTraffic traffic = subnet_.port(at).traffic;
      const fabric::PacketCount sent = network.sent_packets(at.node, at.port - 1u);
      const fabric::PacketCount received = network.sent_packets(peer.node, peer.port - 1u);
      traffic.sent_bytes = sent.bytes;
      traffic.sent_packets = sent.packets;
      traffic.received_bytes = received.bytes;
      traffic.received_packets = received.packets;
      traffic.sent_unicast = sent.packets - sent.multicast;
      traffic.received_unicast = received.packets - received.multicast;
      traffic.sent_multicast = sent.multicast;
      traffic.received_multicast = received.multicast;
      traffic.receive_switch_relay_errors = network.dropped_packets(at.node, at.port - 1u);
      const Rate rate = network.port(at.node, at.port - 1u).rate;
      traffic.transmit_wait =
          static_cast<u64>(network.waited_for_credits(at.node, at.port - 1u).seconds() *
                           static_cast<double>(rate.bps()) / 8);
      subnet_.set_traffic(at, traffic);
    }
}

}  // namespace verbena::live
