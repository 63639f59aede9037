#include "host/links/udp_link.h"

#include <algorithm>
#include <cerrno>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "host/links/management_frames.h"
#include "host/links/quiet_sources.h"
#include "host/os/clock.h"
#include "host/sharing/qpn_slot.h"
#include "wire/ib/bth.h"

namespace verbena::host {
namespace {

constexpr Duration kOpenPatience = sec(5);
constexpr Duration kLeavePatience = ms(500);
constexpr u32 kLastLooks = 64;  // before the sockets are closed
// While we joined or left, frames for other processes may have arrived here. We forward them in one
// burst, and the kernel queues only ten (net.unix.max_dgram_qlen) to each process.
constexpr Duration kBurstPatience = ms(100);

}  // namespace

Expected<std::unique_ptr<UDPLink>> UDPLink::open(
    const LocalAddress& address, u64 random, const std::optional<EncryptionSettings>& encryption) {
  Expected<Directory> directory = Directory::open();
  if (!directory) return tl::unexpected(directory.error());
  return open(address, random, std::move(*directory), encryption);
}

Expected<std::unique_ptr<UDPLink>> UDPLink::open(
    const LocalAddress& address, u64 random, Directory directory,
    const std::optional<EncryptionSettings>& encryption) {
  return start_link(std::unique_ptr<UDPLink>(new UDPLink(std::move(directory))), address, random,
                    encryption);
}

Expected<std::unique_ptr<UDPLink>> UDPLink::open_in_network(
    const LocalAddress& address, u64 random, u32 vni,
    const std::optional<EncryptionSettings>& encryption) {
  Expected<Directory> directory = Directory::open();
  if (!directory) return tl::unexpected(directory.error());
  std::unique_ptr<UDPLink> link(new UDPLink(std::move(*directory)));
  link->vni_ = vni;
  if (!encryption) link->vxlan_.emplace(vni);
  link->is_encapsulated_ = true;
  return start_link(std::move(link), address, random, encryption);
}

Expected<std::unique_ptr<UDPLink>> UDPLink::open_for_vlan(const LocalAddress& address, u64 random) {
  Expected<Directory> directory = Directory::open();
  if (!directory) return tl::unexpected(directory.error());
  std::unique_ptr<UDPLink> link(new UDPLink(std::move(*directory)));
  link->is_encapsulated_ = true;
  return start_link(std::move(link), address, random, std::nullopt);
}

Expected<std::unique_ptr<UDPLink>> UDPLink::start_link(
    std::unique_ptr<UDPLink> link, const LocalAddress& address, u64 random,
    const std::optional<EncryptionSettings>& encryption) {
  Expected<Directory::Lock> lock = link->directory_.lock(kOpenPatience);
  if (!lock) return tl::unexpected(lock.error());
  if (Expected<void> joined = link->join(address, random, encryption, *lock); !joined) {
    link->leave(&*lock);
    return tl::unexpected(joined.error());
  }
  link->start(address);
  return link;
}

Expected<void> UDPLink::join(const LocalAddress& address, u64 random,
                             const std::optional<EncryptionSettings>& encryption,
                             const Directory::Lock& lock) {
  Expected<ProcessChannel> channel = ProcessChannel::claim(random);
  if (!channel) return tl::unexpected(channel.error());
  channel_ = std::move(*channel);
  if (Expected<void> opened = groups_.open(); !opened) return opened;
  interface_index_ = address.interface_index;
  DirectoryTable table = directory_.read();
  table.forget(channel_.slot());
  directory_.write(table);
  if (encryption) {
    Expected<std::unique_ptr<PSPStage>> psp =
        PSPStage::open(*encryption, address, channel_.slot(), vni_);
    if (!psp) return tl::unexpected(psp.error());
    psp_ = std::move(*psp);
    is_encapsulated_ = true;
  }
  for (const GID& gid : address.all())
    if (Expected<void> added = add_port(gid, address.interface_index, lock); !added) return added;
  return {};
}

Expected<void> UDPLink::add_port(const GID& address, u32 interface_index,
                                 const Directory::Lock& lock) {
  Expected<DatagramReceiver> receiver =
      DatagramReceiver::open(address, interface_index, udp_port());
  if (!receiver) return tl::unexpected(receiver.error());
  Expected<DatagramReceiver> follower =
      DatagramReceiver::open(address, interface_index, udp_port());
  if (!follower) return tl::unexpected(follower.error());
  Expected<std::unique_ptr<SourcePorts>> sender =
      SourcePorts::open(address, interface_index, udp_port());
  if (!sender) return tl::unexpected(sender.error());
  auto port = std::make_unique<Port>(std::move(*receiver), std::move(*follower), std::move(*sender),
                                     directory_, channel_, interface_index, steered_by(address));
  if (Expected<void> joined = port->group.join(lock); !joined) return joined;
  ports_.push_back(std::move(port));
  return {};
}

void UDPLink::start(const LocalAddress& address) {
  std::vector<SourcePorts*> senders;
  receive_buffer_bytes_ = ~0u;
  for (const auto& port : ports_) {
    senders.push_back(port->sender.get());
    descriptors_.push_back(port->receiver.fd());
    receive_buffer_bytes_ = std::min(receive_buffer_bytes_, port->receiver.buffer_bytes());
  }
  for (const auto& port : ports_) descriptors_.push_back(port->follower.fd());
  descriptors_.push_back(channel_.fd());
  descriptors_.push_back(groups_.fd());
  if (psp_ != nullptr) descriptors_.push_back(psp_->fd());
  quiet_rounds_.resize(descriptors_.size());
  sender_ = std::make_unique<UDPSender>(address, std::move(senders), counters_);
  patient_until_ = monotonic_now() + kBurstPatience;
}

// Every look costs a system call, so the source that gave last is looked at each time, and those
// that have long given nothing only now and then (quiet_sources.h).
bool UDPLink::receive(Look look) {
  if (psp_ != nullptr && psp_->has_keys()) take_keys();
  const std::size_t due = next_quiet();
  bool any = false;
  for (std::size_t source = 0; source < quiet_rounds_.size(); ++source) {
    const bool worth_it = look == Look::kEverywhere || source == favourite_ || source == due ||
                          quiet_rounds_[source] < kQuietAfter;
    if (!worth_it) continue;
    if (receive_from(source)) {
      any = true;
      favourite_ = source;
      quiet_rounds_[source] = 0;
    } else {
      ++quiet_rounds_[source];
    }
  }
  return any;
}

// The one whose turn it is in this round; none: more than there are.
std::size_t UDPLink::next_quiet() {
  if (++round_ % kLookInterval != 0) return quiet_rounds_.size();
  do {
    next_quiet_ = (next_quiet_ + 1) % quiet_rounds_.size();
  } while (is_idle_follower(next_quiet_));
  return next_quiet_;
}

bool UDPLink::is_idle_follower(std::size_t source) const {
  const bool is_follower = source >= ports_.size() && source < 2 * ports_.size();
  return is_follower && !ports_[source - ports_.size()]->follower.follows();
}

bool UDPLink::receive_from(std::size_t source) {
  const std::size_t ports = ports_.size();
  if (source < ports) return receive_from_port(source);
  if (source < 2 * ports) return receive_followed(source - ports);
  if (source == 2 * ports) return receive_from_processes();
  return source == 2 * ports + 1 && groups_.receive(counters_);  // keys: take_keys()
}

// The link begins or ends to follow a source when no earlier datagram is left: so packets keep
// their order.
bool UDPLink::receive_from_port(std::size_t index) {
  DatagramReceiver& receiver = ports_[index]->receiver;
  first_to_poll_ = std::min(first_to_poll_, index);
  if (receiver.receive(counters_)) return true;
  if (receiver.source().is_steady()) follow_steady(index);
  return false;
}

bool UDPLink::receive_followed(std::size_t index) {
  Port& port = *ports_[index];
  if (!port.follower.follows()) return false;
  first_to_poll_ = std::min(first_to_poll_, index);
  if (port.follower.receive(counters_)) return true;
  if (port.is_shared) port.follower.close();
  return false;
}

// Follows no source of this host: its datagrams include probes, which ask for each socket's place
// in the kernel's group.
void UDPLink::follow_steady(std::size_t index) {
  Port& port = *ports_[index];
  u32& quiet_rounds = quiet_rounds_[ports_.size() + index];
  const DatagramSource& source = port.receiver.source().last();
  const bool is_free = !port.follower.follows() || quiet_rounds >= kQuietAfter;
  if (!is_free || port.is_shared || !port.follower.is_open() ||
      source.address == port.receiver.address())
    return;
  port.follower.follow(source);
  port.receiver.forget_source();
  quiet_rounds = 0;
}

bool UDPLink::receive_from_processes() {
  taken_over_.reset();
  switch (channel_.receive()) {
    case ProcessChannel::Received::kNothing: return false;
    case ProcessChannel::Received::kIgnored: return true;
    case ProcessChannel::Received::kAnswer:
      for (const auto& port : ports_) port->group.on_answer(channel_.answer());
      return true;
    case ProcessChannel::Received::kFrame: taken_over_ = channel_.frame(); return true;
  }
  CHECK_UNREACHABLE();
}

bool UDPLink::poll_frame(IngressFrame& out, Time now) {
  for (; first_to_poll_ < ports_.size(); ++first_to_poll_) {
    Port& port = *ports_[first_to_poll_];
    while (port.poll_frame(out)) {
      if (!is_for_us(port, out, now)) continue;
      ++counters_.received_frames;
      return true;
    }
  }
  return poll_multicast(out) || poll_taken_over(out) || router_.poll_kept(out, now);
}

QPN UDPLink::upcoming(u32 frames) const {
  const std::size_t ports = ports_.size();
  if (favourite_ < ports) return ports_[favourite_]->receiver.upcoming(frames);
  return favourite_ < 2 * ports ? ports_[favourite_ - ports]->follower.upcoming(frames) : QPN{};
}

// A group's port takes nothing else: what names a QP belongs to the port of an address.
bool UDPLink::poll_multicast(IngressFrame& out) {
  while (groups_.poll_frame(out)) {
    if (out.transport.size() >= BTH::kSize &&
        load_be24(out.transport.data() + BTH::kDestQPAt) == kMulticastQPN.value) {
      ++counters_.received_frames;
      return true;
    }
    ++counters_.receive_dropped;
  }
  return false;
}

bool UDPLink::poll_taken_over(IngressFrame& out) {
  if (!taken_over_) return false;
  out = *taken_over_;
  taken_over_.reset();
  const bool ours = std::ranges::any_of(
      ports_, [&](const auto& port) { return port->receiver.address() == out.destination; });
  ++(ours ? counters_.taken_over : counters_.receive_dropped);
  return ours && (psp_ == nullptr || out.authenticated || open_taken_over(out));
}

Expected<void> UDPLink::join_multicast(const GID& group) {
  if (is_encapsulated_ && psp_ == nullptr)
    return failure(EOPNOTSUPP, "cannot join the group " + group.to_string() +
                                   ": groups are not reached through VXLAN, nor in a VLAN");
  if (psp_ != nullptr)
    return failure(EOPNOTSUPP, "cannot join the group " + group.to_string() +
                                   ": keys are agreed by pairs of hosts, so that multicast is not "
                                   "encrypted; unset " +
                                   kEncryptionVariable);
  return groups_.join(group, interface_index_);
}

// --- encryption

SteerBy UDPLink::steered_by(const GID& address) const {
  if (!vxlan_) return steered_by();
  return address.is_ipv4() ? SteerBy::kDestQPInVXLANOverIPv4 : SteerBy::kDestQPInVXLANOverIPv6;
}

void UDPLink::append_encapsulated(const EgressFrame& frame) {
  Encapsulation* const around =
      vxlan_ ? vxlan_->sender_for(frame) : psp_->sender_for(frame, counters_);
  if (around != nullptr) sender_->append(frame, around);
}

bool UDPLink::open_encapsulated(Port& port, IngressFrame& frame, Time now) {
  if (psp_ != nullptr) return frame.authenticated || open_sealed(port, frame, now);
  if (const auto probe = ProbePacket::decode(frame.transport)) {
    if (frame.source == frame.destination) port.group.on_probe(*probe);
    return false;
  }
  if (vxlan_) return vxlan_->open_frame(frame, counters_);
  ++counters_.refused_vlan;
  return false;
}

// Frames that waited for a key go first.
void UDPLink::take_keys() {
  const std::vector<faults::HeldFrame> released = psp_->take_keys(counters_);
  if (has_left_ || released.empty()) return;
  for (const faults::HeldFrame& frame : released) append_encapsulated(frame.egress());
  sender_->flush();
}

// Forwards a packet for another process unchanged: that process has the replay window. Returns
// false if the packet is not for us, or not authentic.
bool UDPLink::open_sealed(Port& port, IngressFrame& frame, Time now) {
  if (const auto probe = ProbePacket::decode(frame.transport)) {
    if (frame.source == frame.destination) port.group.on_probe(*probe);
    return false;
  }
  if (const auto notice = PSPNotice::decode(frame.transport)) {
    if (notice->slot == channel_.slot()) psp_->on_notice(*notice);
    return false;
  }
  if (const auto header = PSPHeader::decode(frame.transport)) {
    const u32 slot = slot_of_spi(header->spi);
    if (is_process_slot(slot) && slot != channel_.slot() && ProcessChannel::is_alive(slot)) {
      hand_on(port, slot, frame, now);
      return false;
    }
  }
  const GID sender = frame.source;
  if (psp_->open_frame(frame, counters_)) return true;
  if (const auto notice = psp_->take_notice(now))
    port.sender->first().send_alone(notice->encode(),
                                    SocketAddress(sender, psp_->port(), interface_index_));
  return false;
}

bool UDPLink::open_raw(IngressFrame& frame, Time now) {
  const auto port = std::ranges::find_if(
      ports_, [&](const auto& p) { return p->receiver.address() == frame.destination; });
  return port != ports_.end() && open_sealed(**port, frame, now);
}

bool UDPLink::is_for_our_device(const IngressFrame& frame, Time now) {
  const auto port = std::ranges::find_if(
      ports_, [&](const auto& p) { return p->receiver.address() == frame.destination; });
  return port != ports_.end() && is_for_our_device(**port, frame, now);
}

bool UDPLink::open_taken_over(IngressFrame& frame) { return psp_->open_frame(frame, counters_); }

// --- who a frame is for

bool UDPLink::is_for_us(Port& port, IngressFrame& frame, Time now) {
  if (is_encapsulated_ && !open_encapsulated(port, frame, now)) return false;
  return is_for_our_device(port, frame, now);
}

bool UDPLink::is_for_our_device(Port& port, const IngressFrame& frame, Time now) {
  if (frame.transport.size() < BTH::kSize) return true;  // for the device to count
  const u32 slot = slot_of(load_be24(frame.transport.data() + BTH::kDestQPAt));
  if (slot == channel_.slot()) return true;
  if (const auto probe = ProbePacket::decode(frame.transport)) {
    if (frame.source == frame.destination) port.group.on_probe(*probe);
    return false;
  }
  if (load_be24(frame.transport.data() + BTH::kDestQPAt) == kGSIQPN.value)
    return is_management_for_us(router_, frame, now, counters_);
  if (!is_process_slot(slot)) return true;
  hand_on(port, slot, frame, now);
  return false;
}

void UDPLink::hand_on(Port& port, u32 slot, const IngressFrame& frame, Time now) {
  const bool sent = channel_.send(slot, frame, patient_until_);
  ++(sent ? counters_.handed_on : counters_.receive_dropped);
  if (port.follower.follows(frame)) {
    port.is_shared |= sent;
    return;
  }
  if (sent || errno != ECONNREFUSED) port.group.on_misdirected(now);  // the slot's owner lives
}

void UDPLink::Port::close() {
  receiver.close();
  follower.close();
  sender->close();
}

void UDPLink::leave() {
  if (has_left_) return;
  const Expected<Directory::Lock> lock = directory_.lock(kLeavePatience);
  leave(lock ? &*lock : nullptr);
}

void UDPLink::leave(const Directory::Lock* lock) {
  has_left_ = true;
  patient_until_ = monotonic_now() + kBurstPatience;
  hand_on_the_rest();
  for (const auto& port : ports_) port->group.leave(lock);
  hand_on_the_rest();
  for (const auto& port : ports_) port->close();
  if (psp_ != nullptr) psp_->leave();
  channel_.close();
  groups_.close();
}

// Forwards the frames that the kernel gave us before the others' program was attached, those for QP
// 1 included.
void UDPLink::hand_on_the_rest() {
  IngressFrame ours;
  const Time now = monotonic_now();
  for (u32 looks = 0; looks < kLastLooks && receive(Look::kEverywhere); ++looks)
    while (poll_frame(ours, now)) continue;
}

Time UDPLink::next_timer() const {
  const bool has_early =
      std::ranges::any_of(std::span(ports_).subspan(std::min(first_to_poll_, ports_.size())),
                          [](const auto& port) { return port->group.has_early(); });
  return has_early ? Time() : router_.next_timer();
}

void UDPLink::abandon() {
  has_left_ = true;
  for (const auto& port : ports_) port->close();
  channel_.close();
  groups_.close();
  if (psp_ != nullptr) psp_->abandon();
  router_.close();
  directory_.close();
}

}  // namespace verbena::host
