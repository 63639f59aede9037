#include "live/subnet_server.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace verbena::live {
namespace {

using management::PortPlace;

// Locally administered. A node's ports have the numbers behind it.
constexpr u64 kFirstGUID = 0x0256'4500'0000'0100;
constexpr u64 kGUIDsOfNode = 0x100;

u8 mtu_code_of(u32 octets) {
  u8 code = 1;
  while (code < 5 && (128u << (code + 1)) <= octets) ++code;
  return code;
}

}  // namespace

SubnetServer::SubnetServer(const fabric::Scenario& scenario) : scenario_(scenario) {
  add_nodes();
  add_links();
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
                            .mtu = mtu_code_of(config.mtu_octets)});
}

// A node's ports are numbered in the order of its links; InfiniBand counts them from 1.
void SubnetServer::add_links() {
  std::vector<u8> next(scenario_.plan.topology.nodes, 1);
  for (const fabric::TopologyLink& link : scenario_.plan.topology.links)
    subnet_.join({link.a, next[link.a]++}, {link.b, next[link.b]++},
                 management::link_kind_of(link.config.rate.bps()));
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
  if (mad.size() < kMADSize) mad.resize(kMADSize);
  management::Datagram datagram;
  datagram.dlid = header.lid;
  datagram.service_level = header.service_level;
  datagram.p_key_index = header.p_key_index;
  datagram.source_qp = header.qp == 0 ? 0 : 1;  // QP 0 sends to QP 0, QP 1 to all others
  datagram.destination_qp = header.qp;
  datagram.q_key = header.q_key;
  datagram.mad = std::move(mad);
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

// What agents send goes into the subnet; what comes out of it goes to agents.
void SubnetServer::pump(Time now) {
  for (bool any = true; any;) {
    any = false;
    while (std::optional<management::Delivery> out = agents_.poll_to_send()) {
      subnet_.send(out->at, std::move(out->datagram), now);
      any = true;
    }
    while (std::optional<management::Delivery> in = subnet_.poll_delivery()) {
      agents_.deliver(std::move(*in));
      any = true;
    }
  }
}

void SubnetServer::on_timer(Time now) {
  agents_.on_timer(now);
  subnet_.on_timer(now);
  pump(now);
}

Time SubnetServer::next_timer() const {
  return std::min(agents_.next_timer(), subnet_.next_timer());
}

std::optional<management::ReceivedMAD> SubnetServer::poll_received() {
  return agents_.poll_received();
}

}  // namespace verbena::live
