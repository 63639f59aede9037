#include "host/links/fabric/fabric_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/bytes.h"
#include "host/links/management_frames.h"
#include "host/os/clock.h"
#include "host/sharing/qpn_slot.h"
#include "memory/touch.h"
#include "wire/ib/bth.h"
#include "wire/ib/lid_address.h"
#include "wire/ib/lrh.h"
#include "wire/roce/icrc.h"

namespace verbena::host {
namespace {

constexpr int kSendPatienceMs = 2000;  // for a server that is descheduled

// Without the Identification, which is 0.
u32 icrc_for(const EgressFrame& frame, const FabricPacket& packet, std::span<const u8> transport) {
  if (frame.type != GIDType::kInfiniBand)
    return icrc_of({.source = frame.source,
                    .destination = frame.destination,
                    .udp_source_port = frame.udp_source_port},
                   transport);
  const std::size_t bytes = LRH::kSize + transport.size() + kICRCSize;
  return icrc_of_local({.service_level = sl_of_traffic_class(packet.traffic_class),
                        .dlid = packet.dlid,
                        .packet_words = static_cast<u16>(bytes / 4),
                        .slid = packet.slid},
                       transport);
}

// BTH .. ICRC. The size; 0: there is no room.
std::size_t write_transport(const EgressFrame& frame, const FabricPacket& packet,
                            std::span<u8> out) {
  const std::size_t size = frame.transport_size();
  if (size + kICRCSize > out.size()) return 0;
  std::memset(out.data(), 0, size);  // the pad, and what is not there any more
  std::copy_n(frame.headers.begin(), frame.headers_size, out.begin());
  u8* to = out.data() + frame.headers_size;
  for (u32 i = 0; i < frame.payload.count; ++i) {
    const Bytes part = frame.payload.parts[i];
    (void)touch([&] { std::memcpy(to, part.data(), part.size()); });
    to += part.size();
  }
  const u32 icrc = icrc_for(frame, packet, out.first(size));
  store_icrc(icrc ^ frame.icrc_flip, out.subspan(size).first<kICRCSize>());
  return size + kICRCSize;
}

}  // namespace

Expected<std::optional<FabricPlace>> FabricLink::place_from_environment() {
  const char* const text = std::getenv(kFabricVariable);
  if (text == nullptr || *text == 0) return std::optional<FabricPlace>();
  std::optional<FabricPlace> place = FabricPlace::parse(text);
  if (!place) return failure(EINVAL, "VERBENA_FABRIC is set by `verbena run --fabric` alone");
  return place;
}

Expected<std::unique_ptr<FabricLink>> FabricLink::open(const FabricPlace& place, u64 random) {
  Expected<Descriptor> socket = connect_to_fabric(place.name);
  if (!socket) return tl::unexpected(socket.error());
  Expected<ProcessChannel> channel = ProcessChannel::claim(random);
  if (!channel) return tl::unexpected(channel.error());
  const Expected<FabricAttached> attached = ask_fabric<FabricAttached>(
      socket->get(),
      FabricAttach{.host = place.host, .claim = place.claim, .slot = channel->slot()});
  if (!attached) return tl::unexpected(attached.error());
  std::unique_ptr<FabricLink> link(new FabricLink(std::move(*channel), place.host));
  link->socket_ = std::move(*socket);
  link->settings_ = *attached;
  link->told_port_ = attached->port;
  link->own_gid_ = gid_of(attached->port);
  link->descriptors_ = {link->socket_.get(), link->channel_.fd()};
  return link;
}

// Returns the destination of the frame, or nullopt if it is not in this fabric.
std::optional<FabricPacket> FabricLink::address(const EgressFrame& frame) const {
  FabricPacket packet{.udp_source_port = frame.udp_source_port,
                      .traffic_class = frame.traffic_class,
                      .hop_limit = frame.hop_limit};
  if (frame.type != GIDType::kInfiniBand) {
    const std::optional<u32> to =
        frame.destination.is_ipv4() ? fabric_host_of(frame.destination.ipv4()) : std::nullopt;
    if (!to) return std::nullopt;
    packet.peer = *to;
    packet.by_peer = true;
    return packet;
  }
  // With several LIDs, the path bits of the source are those of the destination.
  const FabricPortAttributes& port = settings_.port;
  packet.dlid = lid_of_address(frame.destination);
  const u32 path_bits = packet.dlid & ((1u << port.lmc) - 1);
  packet.slid = static_cast<u16>(port.lid | (packet.dlid < kFirstMulticastLID ? path_bits : 0));
  if (packet.dlid == 0 || port.lid == 0) return std::nullopt;
  return packet;
}

void FabricLink::append(const EgressFrame& frame) {
  if (!socket_.is_open()) return;
  const std::optional<FabricPacket> packet = address(frame);
  const std::size_t size = packet ? write_transport(frame, *packet, out_) : 0;
  if (size == 0 || !send(*packet, std::span(out_).first(size))) {
    ++counters_.send_dropped;
    return;
  }
  ++counters_.sent_frames;
  ++counters_.sent_bursts;
  if (!is_fabric_acknowledgement(Opcode::from_byte(out_[0]))) waiting_bytes_ += size;
}

bool FabricLink::send(const FabricPacket& packet, std::span<const u8> bytes) {
  for (;;) {
    const int error = send_fabric(socket_.get(), packet, bytes);
    if (error == 0) return true;
    if (error != EAGAIN && error != EWOULDBLOCK) {
      die();
      return false;
    }
    pollfd waiting{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&waiting, 1, kSendPatienceMs) == 0) return false;
  }
}

bool FabricLink::receive(Look /*look*/) {
  arrived_ = polled_ = 0;
  const bool from_processes = receive_from_processes();
  return receive_from_server() || from_processes;
}

bool FabricLink::receive_from_server() {
  if (!socket_.is_open()) return has_died_;
  bool any = false;
  for (u32 i = 0; i < kBatch && socket_.is_open(); ++i) {
    std::array<u8, kMaxFabricMessage>& buffer = buffers_[i];
    const ssize_t size = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) break;
    any = true;
    const auto message =
        FabricMessage::of(std::span(buffer).first(size > 0 ? static_cast<std::size_t>(size) : 0));
    message ? take(*message) : die();
  }
  return any;
}

bool FabricLink::receive_from_processes() {
  taken_over_.reset();
  switch (channel_.receive()) {
    case ProcessChannel::Received::kNothing: return false;
    case ProcessChannel::Received::kIgnored:
    case ProcessChannel::Received::kAnswer: return true;
    case ProcessChannel::Received::kFrame: taken_over_ = channel_.frame(); return true;
  }
  CHECK_UNREACHABLE();
}

void FabricLink::take(const FabricMessage& message) {
  if (const auto packet = message.as<FabricPacket>()) {
    arrivals_[arrived_++] = {*packet, message.rest<FabricPacket>()};
    ++counters_.received_datagrams;
  } else if (const auto credit = message.as<FabricCredit>()) {
    waiting_bytes_ -= std::min(waiting_bytes_, credit->bytes);
  } else if (const auto clock = message.as<FabricClockMessage>()) {
    settings_.clock = clock->clock;
  } else if (const auto port = message.as<FabricPortAttributes>()) {
    const bool reregister = settings_.port.client_reregister && port_has_changed_;
    settings_.port = *port;
    settings_.port.client_reregister |= reregister;
    port_has_changed_ = true;
  }
}

std::optional<FabricLink::PortChange> FabricLink::take_port_change() {
  if (!std::exchange(port_has_changed_, false)) return std::nullopt;
  return PortChange{std::exchange(told_port_, settings_.port), settings_.port};
}

// From now on the clock runs at real speed, so that operations that wait for the fabric time out
// soon.
void FabricLink::die() {
  const Time now = monotonic_now();
  settings_.clock = {.simulated = device_time(now), .real = now, .scale = 1, .runs = true};
  waiting_bytes_ = 0;
  socket_.reset();
  has_died_ = true;
}

bool FabricLink::poll_frame(IngressFrame& out, Time now) {
  while (polled_ < arrived_) {
    out = frame_of(arrivals_[polled_++]);
    if (!is_for_us(out, now)) continue;
    ++counters_.received_frames;
    return true;
  }
  if (taken_over_) {
    out = *taken_over_;
    taken_over_.reset();
    ++counters_.taken_over;
    return true;
  }
  return router_.poll_kept(out, now);
}

IngressFrame FabricLink::frame_of(const Arrival& arrival) const {
  if (const FabricPacket& packet = arrival.packet; !packet.by_peer) {
    const bool is_multicast = packet.dlid >= kFirstMulticastLID;
    return {.source = address_of_lid(packet.slid),
            .destination = is_multicast ? address_of_lid(packet.dlid) : own_gid(),
            .type = GIDType::kInfiniBand,
            .traffic_class = packet.traffic_class,
            .dlid = packet.dlid,
            .transport = arrival.bytes};
  }
  return {.source = GID::from_ipv4(fabric_address_of(arrival.packet.peer)),
          .destination = GID::from_ipv4(fabric_address_of(host_)),
          .udp_source_port = arrival.packet.udp_source_port,
          .traffic_class = arrival.packet.traffic_class,
          .hop_limit = arrival.packet.hop_limit,
          .identification_known = true,
          .transport = arrival.bytes};
}

bool FabricLink::is_for_us(const IngressFrame& frame, Time now) {
  if (frame.transport.size() < BTH::kSize ||
      load_be24(frame.transport.data() + BTH::kDestQPAt) != kGSIQPN.value)
    return true;
  return is_management_for_us(router_, frame, now, counters_);
}

// On InfiniBand a program joins through the subnet's administration, and the server gives each of
// its host's processes the frames for a group.
Expected<void> FabricLink::join_multicast(const GID& group) {
  if (settings_.is_infiniband && lid_of_address(group) != 0) return {};
  return failure(EOPNOTSUPP, "a simulated fabric has no multicast");
}

void FabricLink::leave() {
  if (socket_.is_open() && send_fabric(socket_.get(), FabricLeave{}) == 0) {
    std::array<u8, kMaxFabricMessage>& buffer = buffers_[0];
    for (;;) {
      const Expected<std::size_t> size = await_fabric_message(socket_.get(), buffer);
      const auto message = FabricMessage::of(std::span(buffer).first(size.value_or(0)));
      if (!message) break;
      if (!message->as<FabricReport>()) continue;
      const std::span<const u8> text = message->rest<FabricReport>();
      std::fwrite(text.data(), 1, text.size(), stderr);
      break;
    }
  }
  abandon();
}

void FabricLink::abandon() {
  socket_.reset();
  channel_.close();
  router_.close();
  arrived_ = polled_ = 0;
}

}  // namespace verbena::host
