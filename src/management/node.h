// Node: what a channel adapter or a switch keeps for management: the attributes of its ports and
// its forwarding tables. Plain state; subnet_agent.h and performance_agent.h say how MADs read and
// write it, subnet.h joins nodes by links.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "management/attributes.h"
#include "management/datagram.h"

namespace verbena::management {

// Totals since the network began; performance management subtracts what was cleared.
struct PortTraffic {
  u64 sent_bytes = 0, received_bytes = 0;
  u64 sent_packets = 0, received_packets = 0;
  u64 sent_unicast = 0, received_unicast = 0, sent_multicast = 0, received_multicast = 0;
  u64 symbol_errors = 0, receive_errors = 0, link_downed = 0, link_error_recovery = 0;
  u64 receive_switch_relay_errors = 0, transmit_discards = 0;
  u64 receive_constraint_errors = 0;  // P_Key mismatches at a switch
  u64 vl15_dropped = 0;
  u64 local_link_integrity_errors = 0, excessive_buffer_overrun_errors = 0;
  u64 transmit_wait = 0;  // ticks: times of one byte on the link
};

// 4x links; the codes of PortInfo. IBTA 14.2.5.6.
struct LinkKind {
  u8 width = 2;      // LinkWidthActive: 1: 1x, 2: 4x, 4: 8x, 8: 12x
  u8 speed = 4;      // LinkSpeedActive: 1: SDR, 2: DDR, 4: QDR
  u8 ext_speed = 0;  // LinkSpeedExtActive: 1: FDR, 2: EDR, 4: HDR, 8: NDR; 0: none
};
// The kind of link of at most this rate that is nearest to it. bits/s of data.
[[nodiscard]] LinkKind link_kind_of(u64 bits_per_second);

struct NodePort {
  Attribute info{};  // PortInfo, as Get returns it but for M_Key
  std::vector<u16> p_keys;
  Attribute high_priority{}, low_priority{};  // VLArbitration
  u64 guid = 0;
  LinkKind link_kind{};
  std::optional<PortPlace> peer;  // nullopt if the port has no cable
  bool is_plugged = true;         // false if the cable was pulled
  PortTraffic traffic{}, cleared{};
  u64 link_errors = 0;  // since LocalPhyErrors were exceeded last
  Time m_key_lease_ends = Time::never();

  [[nodiscard]] u64 operator[](Component component) const { return get(info, component); }
  void set(Component component, u64 value) { put(info, component, value); }
  [[nodiscard]] PortState state() const {
    return static_cast<PortState>((*this)[port_info::kPortState]);
  }
  [[nodiscard]] PhysicalState physical_state() const {
    return static_cast<PhysicalState>((*this)[port_info::kPortPhysicalState]);
  }
  [[nodiscard]] u16 lid() const { return static_cast<u16>((*this)[port_info::kLID]); }
  // Returns whether the LID is one of the 2^LMC LIDs of the port.
  [[nodiscard]] bool has_lid(u16 lid) const;
};

struct NodeConfig {
  NodeType type = NodeType::kCA;
  u64 guid = 0;  // a port's: + its number, and a switch's own for its ports
  std::string description{};
  u8 ports = 1;
  u8 virtual_lanes = 8;  // of data: 1, 2, 4, 8
  u8 mtu = 5;            // MTUCap: 1: 256 .. 5: 4096
};

struct Node {
  static constexpr u32 kForwardingEntries = 0xc000;
  static constexpr u32 kMulticastEntries = 1024;
  static constexpr u32 kPKeyEntries = 64;
  static constexpr u8 kNoPort = 0xff;
  static constexpr u32 kMLIDsOfBlock = 32, kPortsOfMask = 16;

  explicit Node(const NodeConfig& config);

  [[nodiscard]] bool is_switch() const { return config.type == NodeType::kSwitch; }
  // The port whose LID, M_Key and SM address count for what arrives at `port`.
  [[nodiscard]] NodePort& management_port(u8 port) { return ports[is_switch() ? 0 : port]; }
  [[nodiscard]] const NodePort& management_port(u8 port) const {
    return ports[is_switch() ? 0 : port];
  }
  [[nodiscard]] u8 output_for(u16 lid) const {
    return lid < linear_forwarding.size() ? linear_forwarding[lid] : kNoPort;
  }
  // The ports that a multicast LID goes to, as a mask of 16 bits for 16 ports; position: which 16.
  [[nodiscard]] u16& multicast_mask(u32 mlid, u32 position);
  [[nodiscard]] bool forwards_multicast(u16 lid, u8 port) const;
  [[nodiscard]] u32 multicast_entries() const;  // that were written, from 0xc000 on
  // Precondition: a switch's ports, or 0 and 0.
  [[nodiscard]] std::array<u8, 8>& sl_to_vl(u8 in, u8 out);
  [[nodiscard]] u8 lane_for(u8 service_level, u8 in, u8 out) const;

  NodeConfig config;
  Attribute description{};
  Attribute switch_info{};
  std::vector<NodePort> ports;        // [0]: of a switch, its management port; of a CA, unused
  std::vector<u8> linear_forwarding;  // by LID; as far as it was written
  std::vector<u16> multicast;         // [MLID - 0xc000][position]; as far as it was written
  std::vector<std::array<u8, 8>> sl_to_vl_tables;  // [in][out] of a switch; one of a CA
};

}  // namespace verbena::management
