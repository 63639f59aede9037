// NICConfig: the virtual functions of `verbena nic`, as nic.yaml lists them.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "host/encryption/encryption_settings.h"
#include "host/nic/traffic_classes.h"
#include "host/settings/link_kind.h"

namespace verbena::host {

inline constexpr u32 kMaxNICPriority = 7;

struct NICFunctionConfig {
  std::string name{};
  std::optional<uid_t> user{};   // who may attach: this user,
  std::optional<gid_t> group{};  // or this group; neither: only the NIC's own user
  std::string address{};         // of this host: as VERBENA_ADDRESS
  std::vector<u16> p_keys{0xffff};
  LinkKind link = LinkKind::kUDP;  // no kIWARP; kXDP and kPacket without VNI and VLAN
  std::optional<u32> vni{};        // of the virtual network; nullopt: none
  std::optional<u16> vlan{};       // of IEEE 802.1Q, not with a VNI; nullopt: none
  u32 weight = 1;                  // of the share of what is not guaranteed
  u32 priority = 0;        // up to kMaxNICPriority: a function waits for all of a higher one
  u64 guaranteed_bps = 0;  // sent before what others send beyond theirs
  u64 max_bps = 0;         // 0: no limit
  u64 burst_bytes = 1 << 20;
  TrafficClasses classes{};                 // of the packets of all its programs
  bool has_multicast = false;               // sends to groups and joins them: without VNI and VLAN
  u32 max_groups = 16;                      // that a program has joined at a time
  u32 max_programs = 64;                    // attached at a time
  u32 max_qp = 0, max_mr = 0, max_cqe = 0;  // of each program's device; 0: the device's own
  u64 max_registered_bytes = 0;             // of each program's device; 0: no limit
  u32 connections_per_second = 0;           // requests for one; 0: no limit
  std::optional<u32> max_streams{};         // connections and listeners of iWARP; nullopt: its part
  // Whether programs of one can stay when the other takes its place.
  [[nodiscard]] bool is_same_function(const NICFunctionConfig& other) const {
    return name == other.name && address == other.address && link == other.link &&
           vni == other.vni && vlan == other.vlan;
  }
  [[nodiscard]] bool has_tenants_of(const NICFunctionConfig& other) const {
    return user == other.user && group == other.group;
  }
  friend bool operator==(const NICFunctionConfig&, const NICFunctionConfig&) = default;
};

struct NICConfig {
  std::string socket;  // the path at which programs attach
  u64 rate_bps = 0;    // of all functions together; 0: what the host gives
  std::optional<EncryptionSettings> encryption{};
  std::vector<NICFunctionConfig> functions{};
};

}  // namespace verbena::host
