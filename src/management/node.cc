#include "management/node.h"

#include <algorithm>

#include "base/check.h"

namespace verbena::management {
namespace {

constexpr u8 kMostVLArbitrationEntries = 8;
constexpr u8 kDefaultSubnetTimeOut = 18;  // 4.096 us * 2^18: a second
constexpr u8 kResponseTime = 8;           // 4.096 us * 2^8: a millisecond

u8 vl_cap_of(u8 lanes) {
  switch (lanes) {
    case 1: return 1;
    case 2: return 2;
    case 4: return 3;
    default: return 4;
  }
}

u32 capabilities_of(const Node& node, u8 port) {
  using namespace port_info;
  if (node.is_switch() && port != 0) return 0;  // IBTA 14.2.5.6: of port 0 alone
  u32 mask = kIsNoticeSupported | kIsTrapSupported | kIsSLMappingSupported |
             kIsSystemImageGUIDSupported | kIsExtendedSpeedsSupported |
             kIsCapabilityMaskNoticeSupported | kIsClientReregistrationSupported;
  if (!node.is_switch()) mask |= kIsCommunicationManagementSupported | kIsVendorClassSupported;
  return mask;
}

void fill_port(const Node& node, u8 number, NodePort& port) {
  using namespace port_info;
  port.guid = node.config.guid + (node.is_switch() ? 0 : number);
  port.p_keys.assign(Node::kPKeyEntries, 0);
  port.p_keys[0] = 0xffff;
  port.set(kLocalPortNum, number);
  port.set(kGIDPrefix, kDefaultGIDPrefix);
  port.set(kCapabilityMask, capabilities_of(node, number));
  port.set(kPortState, static_cast<u64>(PortState::kDown));
  port.set(kPortPhysicalState, static_cast<u64>(PhysicalState::kPolling));
  port.set(kLinkDownDefaultState, static_cast<u64>(PhysicalState::kPolling));
  port.set(kNeighborMTU, node.config.mtu);  // Subnet::join() limits it to the peer's
  port.set(kVLCap, vl_cap_of(node.config.virtual_lanes));
  port.set(kOperationalVLs, vl_cap_of(node.config.virtual_lanes));
  port.set(kVLArbitrationHighCap, kMostVLArbitrationEntries);
  port.set(kVLArbitrationLowCap, kMostVLArbitrationEntries);
  port.set(kMTUCap, node.config.mtu);
  port.set(kGUIDCap, 8);
  port.set(kSubnetTimeOut, kDefaultSubnetTimeOut);
  port.set(kRespTimeValue, kResponseTime);
  port.set(kLinkWidthSupported, 2);
  port.set(kLinkWidthEnabled, 2);
  port.set(kLinkSpeedSupported, 7);
  port.set(kLinkSpeedEnabled, 7);
  for (u8 entry = 0; entry < kMostVLArbitrationEntries; ++entry) {
    port.low_priority[2u * entry] = entry % node.config.virtual_lanes;
    port.low_priority[2u * entry + 1] = 64;
  }
}

void fill_switch_info(Attribute& info) {
  using namespace switch_info;
  put(info, kLinearFDBCap, Node::kForwardingEntries);
  put(info, kMulticastFDBCap, Node::kMulticastEntries);
  put(info, kPartitionEnforcementCap, Node::kPKeyEntries);
  put(info, kInboundEnforcementCap, 1);
  put(info, kOutboundEnforcementCap, 1);
  put(info, kDefaultMulticastPrimaryPort, Node::kNoPort);
  put(info, kDefaultMulticastNotPrimaryPort, Node::kNoPort);
  put(info, kLifeTimeValue, 16);
}

std::size_t positions_of(const Node& node) { return node.config.ports / Node::kPortsOfMask + 1; }

}  // namespace

LinkKind link_kind_of(u64 bits_per_second) {
  struct Rate {
    u64 bits_per_second;
    LinkKind kind;
  };
  constexpr u64 kGiga = 1'000'000'000;
  constexpr std::array<Rate, 10> kRates = {{{400 * kGiga, {2, 4, 8}},
                                            {200 * kGiga, {2, 4, 4}},
                                            {100 * kGiga, {2, 4, 2}},
                                            {54 * kGiga, {2, 4, 1}},
                                            {40 * kGiga, {2, 4, 0}},
                                            {25 * kGiga, {1, 4, 2}},
                                            {20 * kGiga, {2, 2, 0}},
                                            {10 * kGiga, {2, 1, 0}},
                                            {5 * kGiga, {1, 2, 0}},
                                            {0, {1, 1, 0}}}};
  return std::ranges::find_if(kRates,
                              [bits_per_second](const Rate& rate) {
                                return bits_per_second >= rate.bits_per_second;
                              })
      ->kind;
}

bool NodePort::has_lid(u16 lid) const {
  const u16 base = this->lid();
  if (base == 0 || lid >= kFirstMulticastLID) return false;
  const auto lmc = static_cast<u32>((*this)[port_info::kLMC]);
  return lid >> lmc == base >> lmc;
}

Node::Node(const NodeConfig& its_config) : config(its_config), ports(its_config.ports + 1u) {
  const std::size_t size = std::min(config.description.size(), description.size());
  std::copy_n(config.description.begin(), size, description.begin());
  for (u32 port = 0; port < ports.size(); ++port)
    fill_port(*this, static_cast<u8>(port), ports[port]);
  if (!is_switch()) {
    sl_to_vl_tables.resize(1);
  } else {
    fill_switch_info(switch_info);
    NodePort& own = ports[0];
    own.set(port_info::kPortState, static_cast<u64>(PortState::kActive));
    own.set(port_info::kPortPhysicalState, static_cast<u64>(PhysicalState::kLinkUp));
    own.set(port_info::kLinkWidthActive, 2);
    own.set(port_info::kLinkSpeedActive, 4);
    sl_to_vl_tables.resize(ports.size() * ports.size());
  }
  for (std::array<u8, 8>& table : sl_to_vl_tables)  // as many lanes as there are, in turn
    for (u8 sl = 0; sl < 16; ++sl)
      table[sl / 2] = static_cast<u8>(table[sl / 2] << 4 | sl % config.virtual_lanes);
}

u16& Node::multicast_mask(u32 mlid, u32 position) {
  CHECK(mlid >= kFirstMulticastLID && mlid - kFirstMulticastLID < kMulticastEntries);
  CHECK(position < positions_of(*this));
  const std::size_t at = (mlid - kFirstMulticastLID) * positions_of(*this) + position;
  if (at >= multicast.size()) multicast.resize(at + 1);
  return multicast[at];
}

bool Node::forwards_multicast(u16 lid, u8 port) const {
  if (lid < kFirstMulticastLID) return false;
  const std::size_t at =
      (u32{lid} - kFirstMulticastLID) * positions_of(*this) + port / kPortsOfMask;
  return at < multicast.size() && (multicast[at] >> port % kPortsOfMask & 1) != 0;
}

u32 Node::multicast_entries() const {
  const std::size_t positions = positions_of(*this);
  return static_cast<u32>((multicast.size() + positions - 1) / positions);
}

std::array<u8, 8>& Node::sl_to_vl(u8 in, u8 out) {
  return is_switch() ? sl_to_vl_tables[in * ports.size() + out] : sl_to_vl_tables[0];
}

u8 Node::lane_for(u8 service_level, u8 in, u8 out) const {
  const std::array<u8, 8>& table =
      is_switch() ? sl_to_vl_tables[in * ports.size() + out] : sl_to_vl_tables[0];
  return service_level % 2 == 0 ? table[service_level / 2] >> 4 : table[service_level / 2] & 15;
}

}  // namespace verbena::management
