#include "management/subnet_agent.h"

#include <algorithm>

namespace verbena::management {
namespace {

using namespace port_info;
using Bytes64 = std::span<u8, kAttributeBytes>;
using Status = MADStatus;

constexpr u8 kClassVersion = 1;
constexpr u32 kEntriesOfBlock = 64;  // LinearForwardingTable
constexpr u32 kPKeysOfBlock = 32;

struct Request {
  Node& node;
  u8 in;
  SMP smp;
  bool is_set;
  Bytes64 data;
  SMPOutcome& outcome;
  [[nodiscard]] u32 modifier() const { return smp.attribute_modifier(); }
};

void fill(Bytes64 to, std::span<const u8> from) {
  std::ranges::fill(to, u8{0});
  std::ranges::copy(from, to.begin());
}

// --- attributes that are only read

Status node_description(const Request& request) {
  if (request.is_set) return Status::kUnsupportedAttribute;
  fill(request.data, request.node.description);
  return Status::kOk;
}

Status node_info(const Request& request) {
  if (request.is_set) return Status::kUnsupportedAttribute;
  const Node& node = request.node;
  const Bytes64 data = request.data;
  std::ranges::fill(data, u8{0});
  put(data, node_info::kBaseVersion, 1);
  put(data, node_info::kClassVersion, kClassVersion);
  put(data, node_info::kNodeType, static_cast<u64>(node.config.type));
  put(data, node_info::kNumPorts, node.config.ports);
  put(data, node_info::kSystemImageGUID, node.config.guid);
  put(data, node_info::kNodeGUID, node.config.guid);
  put(data, node_info::kPortGUID, node.management_port(request.in).guid);
  put(data, node_info::kPartitionCap, Node::kPKeyEntries);
  put(data, node_info::kRevision, 1);
  put(data, node_info::kLocalPortNum, request.in);
  return Status::kOk;
}

// --- PortInfo

// The port that the attribute modifier names; 0 of a CA: that by which the SMP came.
std::optional<u8> named_port(const Request& request, u32 number) {
  if (!request.node.is_switch() && number == 0) return request.in;
  if (number > request.node.config.ports) return std::nullopt;
  return static_cast<u8>(number);
}

bool has_m_key_shown(const NodePort& guard, const Request& request) {
  const u64 key = guard[kMKey];
  return key == 0 || key == request.smp.m_key() || guard[kMKeyProtectBits] == 0;
}

void read_port_info(const Request& request, const NodePort& port, u8 number) {
  fill(request.data, port.info);
  put(request.data, kLocalPortNum, request.in);
  if (request.node.is_switch() && number != 0) put(request.data, kMKey, 0);
  if (!has_m_key_shown(request.node.management_port(request.in), request))
    put(request.data, kMKey, 0);
}

constexpr bool is_mtu(u64 code) { return code >= 1 && code <= 5; }

// The fields that a Set may not have. IBTA 14.2.5.6.
bool is_valid_port_info(const NodePort& port, bool has_lid, std::span<const u8> asked) {
  const u64 lid = get(asked, kLID), lmc = get(asked, kLMC);
  if (has_lid && (lid >= kFirstMulticastLID || (lid & ((1u << lmc) - 1)) != 0)) return false;
  if (const u64 mtu = get(asked, kNeighborMTU); mtu != 0 && !is_mtu(mtu)) return false;
  if (get(asked, kNeighborMTU) > port[kMTUCap]) return false;
  if (get(asked, kOperationalVLs) > port[kVLCap]) return false;
  const u64 width = get(asked, kLinkWidthEnabled);
  return width == 0 || width == 255 || (width & port[kLinkWidthSupported]) != 0;
}

// Returns whether a manager may ask for the state. IBTA 14.2.6.2, figure of the port's state
// machine.
bool may_become(PortState from, u64 asked) {
  switch (static_cast<PortState>(asked)) {
    case PortState::kDown: return true;
    case PortState::kArmed: return from == PortState::kInit || from == PortState::kArmed;
    case PortState::kActive: return from == PortState::kArmed || from == PortState::kActive;
    case PortState::kInit: return false;
  }
  return asked == 0;  // no change
}

void copy(NodePort& port, std::span<const u8> asked, std::initializer_list<Component> components) {
  for (const Component component : components) port.set(component, get(asked, component));
}
// 0: no change.
void copy_nonzero(NodePort& port, std::span<const u8> asked,
                  std::initializer_list<Component> components) {
  for (const Component component : components)
    if (const u64 value = get(asked, component); value != 0) port.set(component, value);
}

// 255: all that the port supports.
void set_enabled(NodePort& port, std::span<const u8> asked, Component enabled, Component supported,
                 u64 all) {
  const u64 value = get(asked, enabled);
  if (value != 0) port.set(enabled, value == all ? port[supported] : value);
}

void note_changes(const NodePort& before, const NodePort& after, PortChanges& changes) {
  changes.state = before.state() != after.state();
  changes.lid = before.lid() != after.lid() || before[kLMC] != after[kLMC];
  changes.sm =
      before[kMasterSMLID] != after[kMasterSMLID] || before[kMasterSMSL] != after[kMasterSMSL];
  changes.gids = before[kGIDPrefix] != after[kGIDPrefix];
}

// Sets the attributes that a CA's port and a switch's port 0 have.
void set_addresses(NodePort& port, std::span<const u8> asked) {
  copy(port, asked,
       {kMKey, kGIDPrefix, kLID, kMasterSMLID, kMKeyLeasePeriod, kMKeyProtectBits, kLMC,
        kMasterSMSL, kSubnetTimeOut, kMKeyViolations});
}

void set_link(NodePort& port, std::span<const u8> asked) {
  copy(port, asked,
       {kVLHighLimit, kVLStallCount, kHOQLife, kPartitionEnforcement, kPKeyViolations,
        kQKeyViolations, kLocalPhyErrors, kOverrunErrors});
  copy_nonzero(port, asked, {kLinkDownDefaultState, kNeighborMTU, kOperationalVLs});
  set_enabled(port, asked, kLinkWidthEnabled, kLinkWidthSupported, 255);
  set_enabled(port, asked, kLinkSpeedEnabled, kLinkSpeedSupported, 15);
  set_enabled(port, asked, kLinkSpeedExtEnabled, kLinkSpeedExtSupported, 31);
}

SMPOutcome::Link link_request(std::span<const u8> asked) {
  switch (static_cast<PhysicalState>(get(asked, kPortPhysicalState))) {
    case PhysicalState::kDisabled: return SMPOutcome::Link::kDisable;
    case PhysicalState::kPolling: return SMPOutcome::Link::kPoll;
    case PhysicalState::kLinkUp: break;
  }
  const bool goes_down = get(asked, kPortState) == static_cast<u64>(PortState::kDown);
  return goes_down ? SMPOutcome::Link::kRetrain : SMPOutcome::Link::kKeep;
}

Status set_port_info(const Request& request, NodePort& port, u8 number) {
  const bool has_lid = !request.node.is_switch() || number == 0;
  Attribute asked;
  std::ranges::copy(request.data, asked.begin());
  const NodePort before = port;
  const u64 state = get(asked, kPortState);
  if (!is_valid_port_info(port, has_lid, asked)) return Status::kInvalidField;
  const bool is_own = request.node.is_switch() && number == 0;
  if (!is_own && !may_become(port.state(), state)) return Status::kInvalidField;
  if (has_lid) set_addresses(port, asked);
  if (!is_own) {
    set_link(port, asked);
    const bool stays_up = state != 0 && state != static_cast<u64>(PortState::kDown);
    if (stays_up) port.set(kPortState, state);
    request.outcome.link = link_request(asked);
  }
  request.outcome.port = number;
  note_changes(before, port, request.outcome.changes);
  request.outcome.changes.client_reregister = get(asked, kClientReregister) != 0;
  return Status::kOk;
}

Status port_info(const Request& request) {
  const std::optional<u8> number = named_port(request, request.modifier() & 0xff);
  if (!number) return Status::kInvalidField;
  NodePort& port = request.node.ports[*number];
  Status status = Status::kOk;
  bool rereregisters = false;
  if (request.is_set) {
    status = set_port_info(request, port, *number);
    rereregisters = request.outcome.changes.client_reregister;
  }
  read_port_info(request, port, *number);
  put(request.data, kClientReregister, rereregisters ? 1 : 0);  // in the answer alone
  return status;
}

// --- other attributes

Status switch_info(const Request& request) {
  using namespace switch_info;
  if (!request.node.is_switch()) return Status::kUnsupportedAttribute;
  Attribute& info = request.node.switch_info;
  if (request.is_set) {
    if (get(request.data, kLinearFDBTop) >= get(info, kLinearFDBCap)) return Status::kInvalidField;
    for (const Component component :
         {kLinearFDBTop, kDefaultPort, kDefaultMulticastPrimaryPort,
          kDefaultMulticastNotPrimaryPort, kLifeTimeValue, kMulticastFDBTop})
      put(info, component, get(request.data, component));
    if (get(request.data, kPortStateChange) != 0) put(info, kPortStateChange, 0);  // 1 clears it
  }
  fill(request.data, info);
  return Status::kOk;
}

Status guid_info(const Request& request) {
  const NodePort& port = request.node.management_port(request.in);
  if (request.modifier() != 0) return Status::kInvalidField;
  std::ranges::fill(request.data, u8{0});
  store_be64(request.data.data(), port.guid);  // others are not kept
  return Status::kOk;
}

Status p_key_table(const Request& request) {
  const std::optional<u8> number =
      named_port(request, request.node.is_switch() ? request.modifier() >> 16 : 0);
  const u32 block = request.modifier() & 0xffff;
  if (!number || block >= Node::kPKeyEntries / kPKeysOfBlock) return Status::kInvalidField;
  const std::span<u16> keys =
      std::span(request.node.ports[*number].p_keys).subspan(block * kPKeysOfBlock, kPKeysOfBlock);
  for (u32 i = 0; i < kPKeysOfBlock; ++i) {
    u8* const at = &request.data[2u * i];
    const u16 asked = load_be16(at);
    if (request.is_set && keys[i] != asked) {
      keys[i] = asked;
      request.outcome.changes.p_keys = true;
      request.outcome.port = *number;
    }
    store_be16(at, keys[i]);
  }
  return Status::kOk;
}

Status sl_to_vl(const Request& request) {
  const u32 in = request.modifier() >> 8 & 0xff, out = request.modifier() & 0xff;
  const bool is_switch = request.node.is_switch();
  if (is_switch && (in > request.node.config.ports || out > request.node.config.ports))
    return Status::kInvalidField;
  std::array<u8, 8>& table = request.node.sl_to_vl(static_cast<u8>(in), static_cast<u8>(out));
  if (request.is_set) std::ranges::copy(request.data.first<8>(), table.begin());
  fill(request.data, table);
  return Status::kOk;
}

Status vl_arbitration(const Request& request) {
  const std::optional<u8> number = named_port(request, request.modifier() & 0xffff);
  const u32 part = request.modifier() >> 16;  // 1, 2: low priority; 3, 4: high
  if (!number || part < 1 || part > 4) return Status::kInvalidField;
  const bool is_kept = part == 1 || part == 3;  // the second halves are longer than the caps
  if (!is_kept) return Status::kInvalidField;
  NodePort& port = request.node.ports[*number];
  Attribute& table = part == 1 ? port.low_priority : port.high_priority;
  if (request.is_set) std::ranges::copy(request.data, table.begin());
  fill(request.data, table);
  return Status::kOk;
}

Status linear_forwarding(const Request& request) {
  const u32 first = request.modifier() * kEntriesOfBlock;
  if (!request.node.is_switch()) return Status::kUnsupportedAttribute;
  if (request.modifier() >= Node::kForwardingEntries / kEntriesOfBlock)
    return Status::kInvalidField;
  std::vector<u8>& table = request.node.linear_forwarding;
  if (request.is_set) {
    if (table.size() < first + kEntriesOfBlock)
      table.resize(first + kEntriesOfBlock, u8{Node::kNoPort});
    std::ranges::copy(request.data, table.begin() + first);
    request.outcome.wrote_forwarding = true;
  }
  for (u32 i = 0; i < kEntriesOfBlock; ++i)
    request.data[i] = request.node.output_for(static_cast<u16>(first + i));
  return Status::kOk;
}

Status multicast_forwarding(const Request& request) {
  const u32 block = request.modifier() & 0x1ff, position = request.modifier() >> 28;
  if (!request.node.is_switch()) return Status::kUnsupportedAttribute;
  if (block >= Node::kMulticastEntries / Node::kMLIDsOfBlock ||
      position > request.node.config.ports / Node::kPortsOfMask)
    return Status::kInvalidField;
  for (u32 i = 0; i < Node::kMLIDsOfBlock; ++i) {
    u8* const at = &request.data[2u * i];
    u16& mask =
        request.node.multicast_mask(kFirstMulticastLID + block * Node::kMLIDsOfBlock + i, position);
    if (request.is_set) mask = load_be16(at);
    store_be16(at, mask);
  }
  request.outcome.wrote_forwarding = request.is_set;
  return Status::kOk;
}

Status attribute(const Request& request) {
  switch (SMPAttribute{request.smp.attribute_id()}) {
    case SMPAttribute::kNodeDescription: return node_description(request);
    case SMPAttribute::kNodeInfo: return node_info(request);
    case SMPAttribute::kSwitchInfo: return switch_info(request);
    case SMPAttribute::kGUIDInfo: return guid_info(request);
    case SMPAttribute::kPortInfo: return port_info(request);
    case SMPAttribute::kPKeyTable: return p_key_table(request);
    case SMPAttribute::kSLtoVLMappingTable: return sl_to_vl(request);
    case SMPAttribute::kVLArbitrationTable: return vl_arbitration(request);
    case SMPAttribute::kLinearForwardingTable: return linear_forwarding(request);
    case SMPAttribute::kMulticastForwardingTable: return multicast_forwarding(request);
    case SMPAttribute::kNotice:
    case SMPAttribute::kSMInfo: break;
  }
  return Status::kUnsupportedAttribute;
}

// --- the M_Key, 14.2.4

// Returns whether the SMP may be executed. A Set needs the key; a Get as the protection bits say.
bool passes_m_key(const NodePort& guard, const SMP& smp) {
  const u64 key = guard[kMKey];
  if (key == 0 || key == smp.m_key()) return true;
  return smp.method() == MADMethod::kGet && guard[kMKeyProtectBits] < 2;
}

void note_violation(NodePort& guard, Time now) {
  const u64 count = guard[kMKeyViolations];
  if (count != 0xffff) guard.set(kMKeyViolations, count + 1);
  const u64 lease_s = guard[kMKeyLeasePeriod];
  if (lease_s != 0 && guard.m_key_lease_ends == Time::never())
    guard.m_key_lease_ends = now + sec(static_cast<i64>(lease_s));
}

// An SMP with the key renews the lease; a lease that has ended takes the protection away.
bool check_m_key(NodePort& guard, const SMP& smp, Time now) {
  if (now >= guard.m_key_lease_ends) {
    guard.m_key_lease_ends = Time::never();
    guard.set(kMKeyProtectBits, 0);
    guard.set(kMKey, 0);
  }
  if (!passes_m_key(guard, smp)) {
    note_violation(guard, now);
    return false;
  }
  if (guard[kMKey] == smp.m_key()) guard.m_key_lease_ends = Time::never();
  return true;
}

}  // namespace

SMPOutcome answer_smp(Node& node, u8 in, SMP smp, Time now) {
  SMPOutcome outcome;
  const MADMethod method = smp.method();
  const bool is_set = method == MADMethod::kSet;
  if (SMPAttribute{smp.attribute_id()} == SMPAttribute::kSMInfo && !node.is_switch()) {
    outcome.answer = SMPOutcome::Answer::kToManager;
    return outcome;
  }
  if (method != MADMethod::kGet && !is_set) {
    outcome.answer = SMPOutcome::Answer::kNone;
    return outcome;
  }
  if (!check_m_key(node.management_port(in), smp, now)) {
    outcome.answer = SMPOutcome::Answer::kNone;
    outcome.m_key_violation = true;
    return outcome;
  }
  const Status status = smp.class_version() == kClassVersion
                            ? attribute({node, in, smp, is_set, smp.attribute(), outcome})
                            : Status::kBadClassOrVersion;
  smp.set_method(MADMethod::kGetResp);
  smp.set_status(status);
  return outcome;
}

}  // namespace verbena::management
