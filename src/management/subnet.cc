#include "management/subnet.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "management/performance_agent.h"

namespace verbena::management {
namespace {

using namespace port_info;

// Traps that packets cause, as many as there are: a port sends one an interval at most.
bool comes_with_packets(u16 trap) { return (trap >= 129 && trap <= 131) || trap >= 256; }

std::span<u8, kMADSize> mad_of(Datagram& datagram) {
  return std::span(datagram.mad).first<kMADSize>();
}

MgmtClass class_of(const Datagram& datagram) { return static_cast<MgmtClass>(datagram.mad[1]); }

void set_link_kind(NodePort& port, LinkKind kind) {
  const u8 widths = static_cast<u8>(kind.width | 1);  // 1x is always among them
  port.link_kind = kind;
  port.set(kLinkWidthSupported, widths);
  port.set(kLinkWidthEnabled, widths);
  port.set(kLinkSpeedExtSupported, kind.ext_speed);
  port.set(kLinkSpeedExtEnabled, kind.ext_speed);
}

void set_active_link(NodePort& port) {
  port.set(kLinkWidthActive, port.link_kind.width);
  port.set(kLinkSpeedActive, port.link_kind.speed);
  port.set(kLinkSpeedExtActive, port.link_kind.ext_speed);
}

}  // namespace

u32 Subnet::add_node(const NodeConfig& config) {
  nodes_.emplace_back(config);
  return static_cast<u32>(nodes_.size()) - 1;
}

void Subnet::join(PortPlace a, PortPlace b, LinkKind kind) {
  // A manager that finds another MTU than both ends can have takes the link down to set it: on a
  // large subnet that would retrain all links in the middle of its first sweep.
  const u64 mtu = std::min(port(a)[kMTUCap], port(b)[kMTUCap]);
  for (const auto& [end, other] : {std::pair(a, b), std::pair(b, a)}) {
    NodePort& port = port_at(end);
    CHECK(!port.peer);
    port.set(kNeighborMTU, mtu);
    port.peer = other;
    set_link_kind(port, kind);
  }
  settle_link(a, Time());
}

// --- the way of a datagram

bool Subnet::is_up(PortPlace at) const {
  return port(at).physical_state() == PhysicalState::kLinkUp;
}

std::optional<PortPlace> Subnet::next_hop(PortPlace from, bool needs_active) const {
  if (from.port == 0 || from.port > nodes_[from.node].config.ports || !is_up(from))
    return std::nullopt;
  if (needs_active && port(from).state() != PortState::kActive) return std::nullopt;
  return port(from).peer;
}

std::optional<PortPlace> Subnet::route(PortPlace from, u16 dlid, bool needs_active) const {
  PortPlace at = from;
  if (port(at).has_lid(dlid)) return at;
  for (u32 hop = 0; hop < kMostHops; ++hop) {
    PortPlace out = at;
    if (nodes_[at.node].is_switch()) out.port = nodes_[at.node].output_for(dlid);
    const std::optional<PortPlace> next = next_hop(out, needs_active);
    if (!next) return std::nullopt;
    at = *next;
    const PortPlace own{at.node, nodes_[at.node].is_switch() ? u8{0} : at.port};
    if (port(own).has_lid(dlid)) return own;
    if (!nodes_[at.node].is_switch()) return std::nullopt;
  }
  return std::nullopt;
}

void Subnet::send(PortPlace from, Datagram datagram, Time now) {
  CHECK(datagram.mad.size() >= kMADSize);
  datagram.slid = port(from).lid();
  if (class_of(datagram) == MgmtClass::kSubnDirectedRoute)
    send_directed(from, std::move(datagram), now);
  else
    send_routed(from, std::move(datagram), now);
}

// A path may begin with a LID: then the directed part begins where that is. 14.2.2.1
void Subnet::send_directed(PortPlace from, Datagram datagram, Time now) {
  const SMP smp(mad_of(datagram));
  if (smp.hop_count() > SMP::kMostHops) return;
  if (smp.is_returning()) return return_directed(from, std::move(datagram));
  if (smp.dr_slid() != kPermissiveLID) {
    const std::optional<PortPlace> start = route(from, datagram.dlid, false);
    if (!start) return;
    from = *start;
  }
  go_on_directed(from, std::move(datagram), now);
}

// Forward, from where the hop pointer says.
void Subnet::go_on_directed(PortPlace at, Datagram datagram, Time now) {
  SMP smp(mad_of(datagram));
  if (smp.hop_pointer() != 0) return;
  for (u8 hop = 1; hop <= smp.hop_count(); ++hop) {
    const PortPlace out{at.node, smp.initial_path(hop)};
    const bool may_leave = nodes_[at.node].is_switch() || (hop == 1 && out.port == at.port);
    const std::optional<PortPlace> next = may_leave ? next_hop(out, false) : std::nullopt;
    if (!next) return;
    at = *next;
    smp.set_return_path(hop, at.port);
  }
  if (smp.dr_dlid() != kPermissiveLID) return;  // no LID-routed part at the far end
  smp.set_hop_pointer(static_cast<u8>(smp.hop_count() + 1));
  take_smp(at, std::move(datagram), now);
}

void Subnet::return_directed(PortPlace at, Datagram datagram) {
  SMP smp(mad_of(datagram));
  for (u8 hop = smp.hop_count(); hop > 0; --hop) {
    const PortPlace out{at.node, smp.return_path(hop)};
    const std::optional<PortPlace> next = next_hop(out, false);
    if (!next) return;
    at = *next;
  }
  smp.set_hop_pointer(0);
  if (smp.dr_slid() != kPermissiveLID) {
    const std::optional<PortPlace> end = route(at, smp.dr_slid(), false);
    if (!end) return;
    at = *end;
  }
  deliver(at, std::move(datagram));
}

void Subnet::send_routed(PortPlace from, Datagram datagram, Time now) {
  const std::optional<PortPlace> at = datagram.dlid == kPermissiveLID
                                          ? std::optional(from)
                                          : route(from, datagram.dlid, !is_smp(datagram));
  if (at) arrive(*at, std::move(datagram), now);
}

void Subnet::arrive(PortPlace at, Datagram datagram, Time now) {
  if (is_smp(datagram)) return take_smp(at, std::move(datagram), now);
  if (class_of(datagram) == MgmtClass::kPerf && !is_response(datagram)) {
    if (answer_performance(nodes_[at.node], at.port, mad_of(datagram)))
      answer(at, std::move(datagram), now);
    return;
  }
  deliver(at, std::move(datagram));
}

// It has come to its destination.
void Subnet::take_smp(PortPlace at, Datagram datagram, Time now) {
  SMP smp(mad_of(datagram));
  if (smp.method() == MADMethod::kTrapRepress) return repress(at, datagram);
  if (is_response(datagram) || smp.method() == MADMethod::kTrap)
    return deliver(at, std::move(datagram));
  if (smp.method() == MADMethod::kSet) last_set_ = now;
  const SMPOutcome outcome = answer_smp(nodes_[at.node], at.port, smp, now);
  if (outcome.m_key_violation) send_trap_256(at, datagram, now);
  switch (outcome.answer) {
    case SMPOutcome::Answer::kNone: return;
    case SMPOutcome::Answer::kToManager: return deliver(at, std::move(datagram));
    case SMPOutcome::Answer::kReply: break;
  }
  answer(at, std::move(datagram), now);
  apply(at, outcome, now);
}

void Subnet::answer(PortPlace at, Datagram datagram, Time now) {
  if (class_of(datagram) == MgmtClass::kSubnDirectedRoute) {
    SMP(mad_of(datagram)).begin_return();
    return return_directed(at, std::move(datagram));
  }
  std::swap(datagram.slid, datagram.dlid);
  std::swap(datagram.source_qp, datagram.destination_qp);
  send_routed(at, std::move(datagram), now);
}

// Switches have no programs.
void Subnet::deliver(PortPlace at, Datagram datagram) {
  if (nodes_[at.node].is_switch()) return;
  deliveries_.push_back({at, std::move(datagram)});
}

std::optional<Delivery> Subnet::poll_delivery() {
  if (deliveries_.empty()) return std::nullopt;
  Delivery delivery = std::move(deliveries_.front());
  deliveries_.pop_front();
  return delivery;
}

std::optional<PortEvent> Subnet::poll_event() {
  if (events_.empty()) return std::nullopt;
  const PortEvent event = events_.front();
  events_.pop_front();
  return event;
}

// --- ports and links

void Subnet::apply(PortPlace at, const SMPOutcome& outcome, Time now) {
  const PortPlace changed{at.node, outcome.port};
  if (outcome.wrote_forwarding) changed_ = true;
  if (outcome.changes.any()) tell(changed, outcome.changes);
  if (outcome.link != SMPOutcome::Link::kKeep) change_link(changed, outcome.link, now);
}

void Subnet::tell(PortPlace at, const PortChanges& changes) {
  changed_ = true;
  if (!nodes_[at.node].is_switch()) events_.push_back({at, changes});
}

void Subnet::change_link(PortPlace at, SMPOutcome::Link change, Time now) {
  NodePort& port = port_at(at);
  const bool is_disabled = port.physical_state() == PhysicalState::kDisabled;
  if (change == SMPOutcome::Link::kRetrain && is_disabled) return;
  set_link_up(at, false);
  if (port.peer) set_link_up(*port.peer, false);
  if (change == SMPOutcome::Link::kDisable)
    port.set(kPortPhysicalState, static_cast<u64>(PhysicalState::kDisabled));
  else if (is_disabled)
    port.set(kPortPhysicalState, static_cast<u64>(PhysicalState::kPolling));
  settle_link(at, now);
}

// Down, or trained anew: Init. A port that is disabled stays so.
void Subnet::set_link_up(PortPlace at, bool up) {
  NodePort& port = port_at(at);
  const PortState before = port.state();
  if (port.physical_state() != PhysicalState::kDisabled)
    port.set(kPortPhysicalState,
             static_cast<u64>(up ? PhysicalState::kLinkUp : PhysicalState::kPolling));
  port.set(kPortState, static_cast<u64>(up ? PortState::kInit : PortState::kDown));
  if (up) set_active_link(port);
  if (port.state() != before) tell(at, {.state = true});
}

// The link is up as soon as both its ends let it be.
void Subnet::settle_link(PortPlace at, Time now) {
  const std::optional<PortPlace> peer = port(at).peer;
  if (!peer) return;
  const auto is_ready = [this](PortPlace end) {
    return port(end).is_plugged && port(end).physical_state() != PhysicalState::kDisabled;
  };
  const bool up = is_ready(at) && is_ready(*peer);
  for (const PortPlace end : {at, *peer}) {
    const bool was_up = is_up(end);
    if (up != was_up || !up) set_link_up(end, up);
  }
  for (const PortPlace end : {at, *peer}) note_link_change(end.node, now);
}

void Subnet::note_link_change(u32 node, Time now) {
  if (!nodes_[node].is_switch()) return;
  put(nodes_[node].switch_info, switch_info::kPortStateChange, 1);
  send_trap_128(node, now);
}

void Subnet::set_plugged(PortPlace at, bool plugged, Time now) {
  if (port(at).is_plugged == plugged || !port(at).peer) return;
  for (const PortPlace end : {at, *port(at).peer}) {
    port_at(end).is_plugged = plugged;
    if (!plugged && is_up(end)) ++port_at(end).traffic.link_downed;
  }
  settle_link(at, now);
}

void Subnet::on_link_errors(PortPlace at, u64 count, Time now) {
  NodePort& its = port_at(at);
  its.link_errors += count;
  if (its.link_errors <= its[kLocalPhyErrors]) return;
  its.link_errors = 0;
  ++its.traffic.local_link_integrity_errors;
  send_link_trap(at, 129, now);
}

void Subnet::on_buffer_overrun(PortPlace at, Time now) {
  if (!is_up(at)) return;
  ++port_at(at).traffic.excessive_buffer_overrun_errors;
  send_link_trap(at, 130, now);
}

void Subnet::on_flow_control_timeout(PortPlace at, Time now) {
  if (!is_up(at)) return;
  ++port_at(at).traffic.link_error_recovery;
  send_link_trap(at, 131, now);
}

void Subnet::set_power(u32 node, bool on, Time now) {
  Node& its = nodes_[node];
  if (!on) {
    Node fresh(its.config);
    for (u32 port = 0; port < its.ports.size(); ++port) {
      fresh.ports[port].peer = its.ports[port].peer;
      fresh.ports[port].traffic = its.ports[port].traffic;
      set_link_kind(fresh.ports[port], its.ports[port].link_kind);
    }
    for (u8 port = 1; port < its.ports.size(); ++port) set_plugged({node, port}, false, now);
    for (u8 port = 1; port < its.ports.size(); ++port) {
      fresh.ports[port].is_plugged = its.ports[port].is_plugged;
      fresh.ports[port].set(kNeighborMTU, its.ports[port][kNeighborMTU]);
    }
    std::erase_if(traps_, [node](const Trap& trap) { return trap.from.node == node; });
    its = std::move(fresh);
    changed_ = true;
    return;
  }
  for (u8 port = 1; port < its.ports.size(); ++port) set_plugged({node, port}, true, now);
}

void Subnet::set_manager(PortPlace at, bool is_manager, Time now) {
  NodePort& port = port_at(at);
  const auto before = static_cast<u32>(port[kCapabilityMask]);
  const u32 after = is_manager ? before | kIsSM : before & ~kIsSM;
  if (before == after) return;
  port.set(kCapabilityMask, after);
  send_trap_144(at, now);
}

// --- traps

// To the subnet manager; until it answers, again and again. A port has one of each number on its
// way, and of those that packets cause no more than one an interval. 13.4.9
void Subnet::send_trap(PortPlace from, u8 type, u16 number, Attribute details, Time now) {
  const NodePort& its = port(from);
  const auto to = static_cast<u16>(its[kMasterSMLID]);
  const bool is_kept_back = std::ranges::any_of(
      traps_, [&](const Trap& trap) { return trap.from == from && trap.number == number; });
  if (!can_send_trap(from) || traps_.size() >= kMostTraps || is_kept_back) return;
  put(details, notice::kIsGeneric, 1);
  put(details, notice::kType, type);
  put(details, notice::kProducerType, nodes_[from.node].is_switch() ? 2 : 1);
  put(details, notice::kTrapNumber, number);
  put(details, notice::kIssuerLID, its.lid());
  Datagram datagram;
  datagram.slid = its.lid();
  datagram.dlid = to;
  datagram.mad.resize(kMADSize);
  const MADHeader header{.mgmt_class = MgmtClass::kSubnLIDRouted,
                         .class_version = 1,
                         .method = MADMethod::kTrap,
                         .transaction_id = next_trap_++,
                         .attribute_id = static_cast<u16>(SMPAttribute::kNotice)};
  header.encode(mad_of(datagram).first<MADHeader::kSize>());
  store_be64(&datagram.mad[24], its[kMKey]);
  std::ranges::copy(details, datagram.mad.begin() + 64);
  const Duration interval = ns(4096) * (i64{1} << its[kSubnetTimeOut]);
  traps_.push_back({from, number, datagram, now + interval, false});
  send_routed(from, std::move(datagram), now);
}

void Subnet::send_trap_128(u32 node, Time now) {
  Attribute details{};
  put(details, notice::kTrap128LID, port({node, 0}).lid());
  send_trap({node, 0}, 1, 128, details, now);
}

// Sends one of traps 129 to 131, whose details are the same. A switch has one of each on its way.
void Subnet::send_link_trap(PortPlace at, u16 number, Time now) {
  const PortPlace from{at.node, nodes_[at.node].is_switch() ? u8{0} : at.port};
  Attribute details{};
  put(details, notice::kTrap129LID, port(from).lid());
  put(details, notice::kTrap129Port, at.port);
  send_trap(from, 1, number, details, now);
}

bool Subnet::can_send_trap(PortPlace at) const {
  return port(at).lid() != 0 && port(at)[kMasterSMLID] != 0;
}

// An agent that has no manager yet, as that of the host on which a manager starts, tells it later.
void Subnet::send_trap_144(PortPlace at, Time now) {
  if (!can_send_trap(at)) {
    if (std::ranges::find(late_traps_, at, &LateTrap::from) == late_traps_.end())
      late_traps_.push_back({at, now});
    return;
  }
  Attribute details{};
  put(details, notice::kTrap144LID, port(at).lid());
  put(details, notice::kTrap144Mask, port(at)[kCapabilityMask]);
  send_trap(at, 4, 144, details, now);
}

Time Subnet::time_of(const LateTrap& late) const {
  const PortPlace at = late.from;
  if (!can_send_trap(at) || port(at).state() != PortState::kActive) return Time::never();
  return last_set_ + std::max(kQuiet, (last_set_ - late.since) / 2);
}

void Subnet::send_late_traps(Time now) {
  const auto is_due = [&](const LateTrap& late) { return time_of(late) <= now; };
  std::vector<PortPlace> due;
  for (const LateTrap& late : late_traps_)
    if (is_due(late)) due.push_back(late.from);
  std::erase_if(late_traps_, is_due);
  for (const PortPlace at : due) send_trap_144(at, now);
}

void Subnet::send_trap_256(PortPlace at, const Datagram& refused, Time now) {
  Datagram copy = refused;
  const SMP smp(mad_of(copy));
  Attribute details{};
  put(details, notice::kTrap256LID, refused.slid);
  put(details, notice::kTrap256DRSLID, smp.is_directed() ? smp.dr_slid() : 0);
  put(details, notice::kTrap256Method, static_cast<u64>(smp.method()));
  put(details, notice::kTrap256Attribute, smp.attribute_id());
  put(details, notice::kTrap256Modifier, smp.attribute_modifier());
  put(details, notice::kTrap256MKey, smp.m_key());
  send_trap({at.node, nodes_[at.node].is_switch() ? u8{0} : at.port}, 2, 256, details, now);
}

void Subnet::on_p_key_violation(PortPlace at, u16 p_key, u16 slid, u32 source_qp,
                                u32 destination_qp, Time now) {
  NodePort& its = port_at(at);
  if (const u64 count = its[kPKeyViolations]; count != 0xffff) its.set(kPKeyViolations, count + 1);
  Attribute details{};
  put(details, notice::kTrap257LID1, slid);
  put(details, notice::kTrap257LID2, its.lid());
  put(details, notice::kTrap257Key, p_key);
  put(details, notice::kTrap257QP1, source_qp);
  put(details, notice::kTrap257QP2, destination_qp);
  send_trap(at, 2, 257, details, now);
}

void Subnet::repress(PortPlace at, const Datagram& datagram) {
  const u64 id = load_be64(&datagram.mad[8]) & 0xffff'ffff;
  const auto is_it = [&](const Trap& trap) {
    return trap.from.node == at.node && (load_be64(&trap.datagram.mad[8]) & 0xffff'ffff) == id;
  };
  for (Trap& trap : traps_)
    if (is_it(trap)) trap.is_repressed = true;
  std::erase_if(traps_, [](const Trap& trap) {
    return trap.is_repressed && !comes_with_packets(trap.number);
  });
}

Time Subnet::next_timer() const {
  Time next = Time::never();
  for (const Trap& trap : traps_) next = std::min(next, trap.again);
  for (const LateTrap& late : late_traps_) next = std::min(next, time_of(late));
  return next;
}

void Subnet::on_timer(Time now) {
  send_late_traps(now);
  std::erase_if(traps_, [now](const Trap& trap) { return trap.is_repressed && trap.again <= now; });
  for (std::size_t i = 0; i < traps_.size(); ++i) {
    if (traps_[i].again > now) continue;
    const Duration interval = ns(4096) * (i64{1} << port(traps_[i].from)[kSubnetTimeOut]);
    traps_[i].again = now + interval;
    Datagram again = traps_[i].datagram;
    again.dlid = static_cast<u16>(port(traps_[i].from)[kMasterSMLID]);
    send_routed(traps_[i].from, std::move(again), now);
  }
}

}  // namespace verbena::management
