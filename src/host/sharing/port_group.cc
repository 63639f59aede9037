#include "host/sharing/port_group.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "host/network/socket_address.h"
#include "host/os/clock.h"
#include "host/os/random.h"
#include "host/sharing/qpn_slot.h"
#include "wire/roce/icrc.h"

namespace verbena::host {
namespace {

// A joining process waits so long for the answers of all others. One that spins in ibv_poll_cq
// answers at once, a sleeping one when its helper thread wakes.
constexpr Duration kJoinPatience = ms(100);
constexpr Duration kProbeRepeat = ms(10);
constexpr Duration kSelfProbePatience = ms(20);

// The known layout of one address; nullopt: a member is gone without goodbye, or its index is
// unknown.
std::optional<std::vector<Steer>> known_layout(const DirectoryTable& table, const GID& address,
                                               u32 own_slot) {
  std::vector<Steer> layout;
  for (const Membership& member : table.members) {
    if (member.address != address) continue;
    if (!is_process_slot(member.slot)) return std::nullopt;  // a damaged table
    if (member.slot != own_slot && !ProcessChannel::is_alive(member.slot)) return std::nullopt;
    layout.push_back({.slot = member.slot, .index = member.index});
  }
  std::vector<bool> seen(layout.size(), false);
  for (const Steer& steer : layout) {
    if (steer.index >= seen.size() || seen[steer.index]) return std::nullopt;
    seen[steer.index] = true;
  }
  return layout;
}

// As the kernel has it after the socket of `slot` is closed: the last takes its place.
std::vector<Steer> layout_without(std::vector<Steer> layout, u32 slot) {
  const auto leaving = std::ranges::find(layout, slot, &Steer::slot);
  if (leaving == layout.end()) return layout;
  const u32 hole = leaving->index;
  layout.erase(leaving);
  for (Steer& steer : layout)
    if (steer.index == layout.size()) steer.index = hole;
  return layout;
}

}  // namespace

Expected<void> PortGroup::join(const Directory::Lock&) {
  DirectoryTable table = parts_.directory.read();
  const u32 slot = parts_.channel.slot();
  std::optional<std::vector<Steer>> layout = known_layout(table, parts_.receiver.address(), slot);
  if (Expected<void> bound = parts_.receiver.bind(); !bound) return bound;

  std::vector<Steer> guess = layout.value_or(std::vector<Steer>{});
  const u32 index = static_cast<u32>(guess.size());
  guess.push_back({.slot = slot, .index = index});
  if (guess.size() > kMaxSteered)
    return failure(EUSERS, std::to_string(kMaxSteered) + " processes already use Verbena on " +
                               parts_.receiver.address().to_string());
  if (!attach(guess))
    return failure(
        errno, std::string("cannot attach a BPF program to a UDP socket: ") + std::strerror(errno));
  if (!layout || !is_at(index)) {
    guess = discover();
    (void)attach(guess);
  } else if (index == 0) {
    detach_steering(parts_.receiver.fd());  // alone: the kernel has nobody else to choose
  }
  store(table, guess);
  return {};
}

void PortGroup::leave(const Directory::Lock* lock) {
  if (lock == nullptr) return;
  DirectoryTable table = parts_.directory.read();
  const u32 slot = parts_.channel.slot();
  const auto layout = known_layout(table, parts_.receiver.address(), slot);
  if (layout) {
    const std::vector<Steer> rest = layout_without(*layout, slot);
    if (!rest.empty()) leave_to(rest);
    store(table, rest);
  } else {
    table.forget(slot);
    parts_.directory.write(table);
  }
}

// Closing the socket and attaching the new program cannot be one step. If the program came first,
// it would steer to our socket the datagrams for the last one, and those that arrive between our
// last look and close() would be lost. So the socket is closed first. Datagrams for the last socket
// then go to an index that no socket has; the kernel gives them to any of the others, which forward
// them. A new socket, which is the last itself, attaches the program, and its own close disturbs no
// other.
void PortGroup::leave_to(const std::vector<Steer>& rest) {
  if (parts_.receiver.renew() && parts_.receiver.bind()) (void)attach(rest);
}

bool PortGroup::poll_early(IngressFrame& out) {
  if (next_early_ == early_.size()) {
    early_.clear();
    next_early_ = 0;
    return false;
  }
  out = early_[next_early_++].ingress();
  return true;
}

void PortGroup::store(DirectoryTable& table, const std::vector<Steer>& layout) {
  const GID& address = parts_.receiver.address();
  std::erase_if(table.members, [&](const Membership& m) { return m.address == address; });
  for (const Steer& steer : layout)
    if (table.members.size() < DirectoryTable::kMaxMembers)
      table.members.push_back({.address = address, .slot = steer.slot, .index = steer.index});
  parts_.directory.write(table);
}

bool PortGroup::attach(const std::vector<Steer>& layout) {
  return attach_steering(parts_.receiver.fd(), layout, parts_.steer_by);
}

void PortGroup::send_probe(u32 index) {
  const ProbePacket probe{
      .index = index, .nonce = probe_.nonce(), .prober_slot = parts_.channel.slot()};
  const auto bytes = probe.encode();
  SourcePort& sender = parts_.sender.first();
  const SocketAddress to(parts_.receiver.address(), sender.destination_port(),
                         parts_.interface_index);
  sender.send_alone(bytes, to);
}

// Whether our own socket is at `index`: then the probe for it comes to us.
bool PortGroup::is_at(u32 index) {
  probe_ = LayoutProbe(random_u64(), index + 1);
  send_probe(index);
  const Time deadline = monotonic_now() + kSelfProbePatience;
  while (monotonic_now() < deadline) {
    receive_while_joining();
    for (const Steer& steer : probe_.layout()) return steer.slot == parts_.channel.slot();
  }
  return false;
}

std::vector<Steer> PortGroup::discover() {
  probe_ = LayoutProbe(random_u64(), ProcessChannel::count_alive());
  const Time deadline = monotonic_now() + kJoinPatience;
  Time repeat;
  while (!probe_.is_complete() && monotonic_now() < deadline) {
    if (monotonic_now() >= repeat) {
      for (const u32 index : probe_.unanswered()) send_probe(index);
      repeat = monotonic_now() + kProbeRepeat;
    }
    receive_while_joining();
  }
  return probe_.layout();
}

// Waits a moment for datagrams. All but probes are for others, QP 1 included, and are kept until a
// process can route them.
void PortGroup::receive_while_joining() {
  std::array<pollfd, 2> waiting{{{.fd = parts_.receiver.fd(), .events = POLLIN, .revents = 0},
                                 {.fd = parts_.channel.fd(), .events = POLLIN, .revents = 0}}};
  if (::poll(waiting.data(), waiting.size(), 1) <= 0) return;
  LinkCounters uncounted;
  IngressFrame frame;
  while (parts_.receiver.receive(uncounted))
    while (parts_.receiver.poll_frame(frame)) {
      if (const auto probe = ProbePacket::decode(frame.transport))
        on_probe(*probe);
      else if (early_.size() < kMaxEarly)
        early_.push_back(faults::HeldFrame::of(frame));
    }
  ProcessChannel::Received received{};
  while ((received = parts_.channel.receive()) != ProcessChannel::Received::kNothing)
    if (received == ProcessChannel::Received::kAnswer) on_answer(parts_.channel.answer());
}

void PortGroup::on_probe(const ProbePacket& probe) {
  const ProbeAnswer answer{
      .nonce = probe.nonce, .index = probe.index, .slot = parts_.channel.slot()};
  if (probe.prober_slot == parts_.channel.slot())
    on_answer(answer);
  else if (is_process_slot(probe.prober_slot))
    (void)parts_.channel.send(probe.prober_slot, answer);
}

void PortGroup::on_answer(const ProbeAnswer& answer) {
  probe_.on_answer(answer);
  if (probing_ && probe_.is_complete()) finish_probe();
}

void PortGroup::on_misdirected(Time now) {
  if (now < next_probe_) return;
  next_probe_ = now + kProbeInterval;
  if (probing_) {  // not all have answered in time: better a part of the layout than the old one
    finish_probe();
    return;
  }
  probing_ = true;
  generation_ = parts_.directory.read().generation;
  probe_ = LayoutProbe(random_u64(), ProcessChannel::count_alive());
  for (const u32 index : probe_.unanswered()) send_probe(index);
}

void PortGroup::finish_probe() {
  probing_ = false;
  const auto lock = parts_.directory.lock(Duration());
  if (!lock) return;
  DirectoryTable table = parts_.directory.read();
  if (table.generation != generation_) return;  // another has changed the layout meanwhile
  (void)attach(probe_.layout());
  store(table, probe_.layout());
}

}  // namespace verbena::host
