#include "live/fabric_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "base/bytes.h"
#include "fabric/flow.h"
#include "host/os/clock.h"
#include "host/os/random.h"
#include "host/os/socket_option.h"
#include "host/sharing/qpn_slot.h"
#include "wire/eth/ecn.h"
#include "wire/ib/bth.h"
#include "wire/ib/lid_address.h"

namespace verbena::live {
namespace {

using fabric::LivePacket;
using host::FabricClock;

// All in real time.
constexpr Duration kShortestWait = us(250);   // events that are due within it happen at once
constexpr Duration kLongestStep = ms(20);     // delays beyond it are not caught up with
constexpr Duration kBetweenClocks = ms(10);   // between two messages about the clock
constexpr Duration kQueueTime = ms(10);       // the length of a NIC's queue of data
constexpr Duration kLinger = ms(500);         // after the last process
constexpr Duration kFirstPatience = sec(20);  // for the first process
constexpr Duration kStuckPatience = sec(2);   // with a process that takes no packets

constexpr u32 kShortestQueue = 64 << 10;       // bytes
constexpr std::size_t kLongestBacklog = 4096;  // packets; those beyond are lost
constexpr std::size_t kLateBacklog = 128;      // simulated time waits for the process
constexpr u32 kReadAtOnce = 64;                // messages of one process
constexpr int kBufferBytes = 4 << 20;          // as far as the kernel grants it
constexpr std::size_t kDestQPAt = 5;           // in BTH
constexpr u32 kDSCPsOfAPriority = 8;

LivePacket::Kind kind_of(Opcode opcode) {
  if (opcode == kCNPOpcode) return LivePacket::Kind::kNotification;
  return host::is_fabric_acknowledgement(opcode) ? LivePacket::Kind::kAcknowledgement
                                                 : LivePacket::Kind::kData;
}

// Maps DSCPs as switches do by default; best effort gets the default priority of scenarios' flows.
u8 priority_of(u8 traffic_class) {
  const u8 dscp = dscp_of(traffic_class);
  return dscp == 0 ? fabric::Flow{}.priority : static_cast<u8>(dscp / kDSCPsOfAPriority);
}

// A NIC with ECN marks all its packets except CNPs as capable of it.
u8 capable(u8 traffic_class, LivePacket::Kind kind) {
  if (kind == LivePacket::Kind::kNotification || ecn_of(traffic_class) != ECN::kNotECT)
    return traffic_class;
  return traffic_class_of(dscp_of(traffic_class), ECN::kECT0);
}

// Returns the link of this name, or the links of the node of this name.
std::vector<u32> links_of(const fabric::Plan& plan, const std::string& name) {
  std::vector<u32> links;
  for (u32 link = 0; link < plan.topology.links.size(); ++link)
    if (plan.names[plan.topology.links[link].a] == name ||
        plan.names[plan.topology.links[link].b] == name)
      links.push_back(link);
  if (!links.empty()) return links;
  if (const std::optional<u32> link = plan.link_named(name)) links.push_back(*link);
  return links;
}

u32 dest_qp_of(const LivePacket& packet) { return load_be24(packet.bytes.data() + kDestQPAt); }

std::string name_of_process(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return "another process";
  std::string name;
  std::ifstream file(fmt::format("/proc/{}/comm", peer.pid));
  std::getline(file, name);
  return name.empty() ? fmt::format("process {}", peer.pid)
                      : fmt::format("process {} ({})", peer.pid, name);
}

}  // namespace

FabricServer::FabricServer(fabric::LiveFabric& fabric, const FabricServerConfig& config,
                           host::Descriptor listening)
    : fabric_(fabric),
      config_(config),
      listening_(std::move(listening)),
      host_of_node_(fabric.scenario().plan.topology.nodes),
      clock_{.simulated = {}, .real = host::monotonic_now(), .scale = config.scale, .runs = false},
      alone_since_(clock_.real) {
  const std::vector<fabric::NodeIndex>& hosts = fabric.scenario().plan.hosts;
  for (u32 i = 0; i < hosts.size(); ++i) host_of_node_[hosts[i]] = i;
  if (fabric.scenario().network.technology == fabric::Technology::kInfiniBand)
    subnet_ = std::make_unique<SubnetServer>(fabric);
}

void FabricServer::run(int stop) {
  for (;;) {
    wait(stop);
    pollfd stopped{.fd = stop, .events = POLLIN, .revents = 0};
    if (stop >= 0 && ::poll(&stopped, 1, 0) > 0) return;
    advance();
    accept_clients();
    for (u32 i = 0; i < clients_.size(); ++i) read(*clients_[i]);
    advance();  // packets of now are sent at this time
    deliver();
    deliver_mads();
    give_credit();
    tell_clock(host::monotonic_now());
    forget_the_gone();
    if (is_over(host::monotonic_now())) return;
  }
}

void FabricServer::wait(int stop) {
  std::vector<pollfd> waiting = {{.fd = stop, .events = POLLIN, .revents = 0},
                                 {.fd = listening_.get(), .events = POLLIN, .revents = 0}};
  for (const auto& client : clients_) {
    const short events = static_cast<short>(client->backlog.empty() ? POLLIN : POLLIN | POLLOUT);
    waiting.push_back({.fd = client->socket.get(), .events = events, .revents = 0});
  }
  const timespec limit = host::to_timespec(Time() + time_to_wait(host::monotonic_now()));
  (void)::ppoll(waiting.data(), waiting.size(), &limit, nullptr);
}

Duration FabricServer::time_to_wait(Time now) const {
  if (has_to_wait(now)) return ms(1);
  const bool has_news = std::ranges::any_of(clients_, [](const auto& client) {
    return client->role == Client::Role::kDevice && !client->knows_clock;
  });
  const bool may_end = config_.life == FabricServerConfig::Life::kUntilTheLastLeaves;
  const Duration idle = has_news ? kBetweenClocks : may_end ? ms(100) : sec(10);
  Time next = clock_.when(fabric_.next_event());
  if (subnet_ != nullptr) next = std::min(next, subnet_->next_timer());
  if (next == Time::never()) return idle;
  return std::clamp(next - now, kShortestWait, idle);
}

void FabricServer::accept_clients() {
  for (;;) {
    host::Descriptor socket(
        ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) return;
    if (!host::is_own_user(socket.get())) continue;
    (void)host::set_option(socket.get(), SOL_SOCKET, SO_SNDBUF, kBufferBytes);
    clients_.push_back(std::make_unique<Client>());
    clients_.back()->socket = std::move(socket);
    clients_.back()->number = next_client_++;
  }
}

// --- messages of processes

void FabricServer::read(Client& client) {
  std::array<u8, host::kMaxFabricMessage> buffer;
  for (u32 i = 0; i < kReadAtOnce && !client.is_gone; ++i) {
    const ssize_t size = ::recv(client.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    const auto message = host::FabricMessage::of(
        std::span(buffer).first(size > 0 ? static_cast<std::size_t>(size) : 0));
    if (message)
      take(client, *message);
    else
      client.is_gone = true;
  }
}

void FabricServer::take(Client& client, const host::FabricMessage& message) {
  if (const auto packet = message.as<host::FabricPacket>())
    on_packet(client, *packet, message.rest<host::FabricPacket>());
  else if (const auto claim = message.as<host::FabricClaim>())
    on_claim(client, *claim);
  else if (const auto attach = message.as<host::FabricAttach>())
    on_attach(client, *attach);
  else if (message.as<host::FabricLeave>())
    on_leave(client);
  else if (subnet_ == nullptr || !take_management(client, message))
    client.is_gone = true;
}

void FabricServer::refuse(Client& client, int error, const std::string& message) {
  host::FabricRefused refused{.error = error};
  message.copy(refused.message.data(), refused.message.size() - 1);
  (void)tell(client, refused);
}

// Returns the holder of the host by another claim; "" if there is none.
std::string FabricServer::holder_of(u32 host, u64 claim) const {
  for (const auto& client : clients_)
    if (!client->is_gone && client->role != Client::Role::kUnknown && client->host == host &&
        client->claim != claim)
      return name_of_process(client->socket.get());
  return {};
}

void FabricServer::on_claim(Client& client, const host::FabricClaim& claim) {
  if (claim.version != host::kFabricVersion)
    return refuse(client, EPROTO, "the fabric's server is of another version of Verbena");
  if (claim.scenario != config_.scenario_hash)
    return refuse(client, ESTALE,
                  "the file has changed since programs run in its fabric; end them first");
  if (claim.scale != 0 && claim.scale != config_.scale)
    return refuse(client, EINVAL,
                  fmt::format("its fabric runs already, with --scale {}", config_.scale));
  const fabric::Plan& plan = fabric_.scenario().plan;
  const std::string name(claim.host.data(), strnlen(claim.host.data(), claim.host.size()));
  const std::optional<fabric::NodeIndex> node = plan.host_named(name);
  if (!node) return refuse(client, ENOENT, fmt::format("there is no host {}", name));
  const u32 host = host_of_node_[*node];
  const std::string holder = subnet_ == nullptr ? holder_of(host, 0) : "";
  if (!holder.empty())
    return refuse(client, EBUSY, fmt::format("host {} is taken by {}", name, holder));
  client.role = Client::Role::kProgram;
  client.host = host;
  client.claim = host::random_u64() | 1;
  host::FabricClaimed claimed{.host = host, .claim = client.claim};
  claimed.is_infiniband = subnet_ != nullptr;
  if (subnet_ != nullptr) claimed.port = subnet_->attributes_of(host);
  (void)tell(client, claimed);
}

void FabricServer::on_attach(Client& client, const host::FabricAttach& attach) {
  const std::vector<fabric::NodeIndex>& hosts = fabric_.scenario().plan.hosts;
  if (attach.version != host::kFabricVersion || attach.host >= hosts.size())
    return refuse(client, EPROTO, "the fabric's server is another one than at the start");
  const std::string holder = subnet_ == nullptr ? holder_of(attach.host, attach.claim) : "";
  if (!holder.empty())
    return refuse(client, EBUSY, fmt::format("host {} is taken by {}", attach.host, holder));
  client.role = Client::Role::kDevice;
  client.host = attach.host;
  client.claim = attach.claim;
  client.slot = attach.slot;
  client.packets_before = packets_of(attach.host);
  const Rate rate = fabric_.rate_of(hosts[attach.host]);
  const double lasting = static_cast<double>(rate.bps()) / 8 * kQueueTime.seconds() / config_.scale;
  const fabric::LinkConfig link{.rate = rate};
  host::FabricAttached attached{
      .rate_bps = rate.bps(),
      .mtu = bytes(fabric_.scenario().network.host(link).device.active_mtu),
      .queue_bytes = std::max(kShortestQueue, static_cast<u32>(lasting)),
      .clock = clock_};
  if (subnet_ != nullptr) {
    attached.is_infiniband = true;
    attached.mtu = fabric_.scenario().network.infiniband.mtu_bytes;
    attached.port = subnet_->attributes_of(attach.host);
  }
  (void)tell(client, attached);
}

void FabricServer::on_packet(Client& client, const host::FabricPacket& packet,
                             std::span<const u8> bytes) {
  const std::vector<fabric::NodeIndex>& hosts = fabric_.scenario().plan.hosts;
  if (client.role != Client::Role::kDevice || bytes.size() < BTH::kSize + kICRCSize ||
      bytes.size() > fabric_.most_bytes()) {
    client.is_gone = true;
    return;
  }
  if (!clock_.runs) {
    began_ = host::monotonic_now();
    set_clock({.simulated = fabric_.now(), .real = began_, .scale = config_.scale, .runs = true});
  }
  const LivePacket::Kind kind = kind_of(Opcode::from_byte(bytes[0]));
  LivePacket live{.source = hosts[client.host],
                  .owner = client.number,
                  .udp_source_port = packet.udp_source_port,
                  .traffic_class = capable(packet.traffic_class, kind),
                  .hop_limit = packet.hop_limit,
                  .priority = priority_of(packet.traffic_class),
                  .kind = kind,
                  .slid = packet.slid,
                  .dlid = packet.dlid,
                  .given = {},
                  .arrived = {},
                  .bytes = {bytes.begin(), bytes.end()}};
  const bool is_known = set_path(client, packet, live);
  const bool is_to_itself = is_known && live.destination == live.source;
  if (is_known && live.dlid >= kFirstMulticastLID) loop_back(live);
  if (is_known && (!is_to_itself || live.dlid >= kFirstMulticastLID))
    return fabric_.send(std::move(live));
  // The packet goes to its own host, past the network, or to none.
  if (kind == LivePacket::Kind::kData) client.credit += bytes.size();
  is_known ? loop_back(std::move(live)) : void(++undelivered_);
}

// Sets the destination of the packet. Returns false if it has none.
bool FabricServer::set_path(Client& client, const host::FabricPacket& packet, LivePacket& live) {
  const std::vector<fabric::NodeIndex>& hosts = fabric_.scenario().plan.hosts;
  if (subnet_ == nullptr) {
    if (packet.peer >= hosts.size()) return false;
    live.destination = hosts[packet.peer];
    return true;
  }
  live.by_host = packet.by_peer;
  if (packet.by_peer) {
    if (packet.peer >= hosts.size()) return false;
    live.slid = subnet_->lid_of(client.host);
    live.dlid = subnet_->lid_of(packet.peer);
    return subnet_->admit_sent(client.host, 0, live);
  }
  live.traffic_class = packet.traffic_class;  // the service level: no ECN
  return subnet_->admit_sent(client.host, sl_of_traffic_class(packet.traffic_class), live);
}

// For the programs of its own host, past the network.
void FabricServer::loop_back(LivePacket packet) {
  packet.destination = packet.source;
  fabric_.arrived().push_back(std::move(packet));
}

void FabricServer::on_leave(Client& client) {
  const bool has_traffic = packets_of(client.host) != client.packets_before;
  const std::string text =
      client.role == Client::Role::kDevice && has_traffic
          ? fmt::format("verbena: in simulated time, 1 : {}\n{}", config_.scale,
                        fabric_.text_of(fabric_.scenario().plan.hosts[client.host]))
          : "";
  (void)tell(client, host::FabricReport{}, {reinterpret_cast<const u8*>(text.data()), text.size()});
  client.is_gone = true;
}

u64 FabricServer::packets_of(u32 host) const {
  const fabric::LiveFigures& figures = fabric_.figures(fabric_.scenario().plan.hosts[host]);
  return figures.sent.packets + figures.received.packets;
}

// --- time

bool FabricServer::has_to_wait(Time now) const {
  return std::ranges::any_of(clients_, [now](const auto& client) {
    return client->backlog.size() > kLateBacklog && now - client->stuck_since < kStuckPatience;
  });
}

// Returns the longest step that simulates nothing on the way: it costs no time.
Duration FabricServer::longest_step() const {
  const Time next = fabric_.next_event();
  const Duration busy = kLongestStep / config_.scale;
  return next == Time::never() ? Time::never() - fabric_.now()
                               : std::max(busy, next - fabric_.now());
}

void FabricServer::advance() {
  const Time now = host::monotonic_now();
  if (!clock_.runs) return;
  const Duration behind = clock_.at(now) - fabric_.now();
  const Duration most = longest_step();
  const Duration step = has_to_wait(now) ? Duration{} : std::min(behind, most);
  if (step > Duration{}) fabric_.run(fabric_.now() + step);
  if (behind <= most && step == behind) return;
  slipped_ = slipped_ + (behind - step) * config_.scale;
  FabricClock clock = clock_;
  clock.simulated = fabric_.now();
  clock.real = now;
  set_clock(clock);
}

void FabricServer::set_clock(const FabricClock& clock) {
  if (!clock_.runs) told_ = Time();
  clock_ = clock;
  for (const auto& client : clients_) client->knows_clock = false;
  tell_clock(clock.real);
}

void FabricServer::tell_clock(Time now) {
  if (now - told_ < kBetweenClocks) return;
  told_ = now;
  for (const auto& client : clients_)
    if (client->role == Client::Role::kDevice && !client->knows_clock)
      client->knows_clock = tell(*client, host::FabricClockMessage{.clock = clock_});
}

// --- messages to processes

// Returns false if the process's socket is full.
template <typename Message>
bool FabricServer::tell(Client& client, const Message& message, std::span<const u8> rest) {
  const int error = host::send_fabric(client.socket.get(), message, rest);
  if (error != 0 && error != EAGAIN && error != EWOULDBLOCK) client.is_gone = true;
  return error == 0;
}

void FabricServer::deliver() {
  for (const auto& client : clients_) flush(*client);
  for (const LivePacket& packet : fabric_.arrived()) give_to_receivers(packet);
  fabric_.arrived().clear();
}

void FabricServer::give_to_receivers(const LivePacket& packet) {
  const u32 host = host_of_node_[packet.destination];
  const bool is_admitted =
      subnet_ == nullptr || subnet_->admit_received(host, packet, host::monotonic_now());
  const bool is_multicast = packet.dlid >= kFirstMulticastLID;
  bool any = false;
  for (const auto& client : clients_) {
    if (!is_admitted || !is_receiver(*client, packet) || (any && !is_multicast)) continue;
    give(*client, packet);
    any = true;
  }
  if (!any) ++undelivered_;
}

// QP 1 is that of all processes of the host: any one of them hands its packets on. A multicast
// packet is for all.
bool FabricServer::is_receiver(const Client& client, const LivePacket& packet) const {
  const u32 qpn = dest_qp_of(packet);
  return client.role == Client::Role::kDevice && !client.is_gone &&
         client.host == host_of_node_[packet.destination] &&
         (qpn == kGSIQPN.value || packet.dlid >= kFirstMulticastLID ||
          client.slot == host::slot_of(qpn));
}

void FabricServer::give(Client& client, const LivePacket& packet) {
  const host::FabricPacket header{.peer = host_of_node_[packet.source],
                                  .udp_source_port = packet.udp_source_port,
                                  .traffic_class = packet.traffic_class,
                                  .hop_limit = packet.hop_limit,
                                  .slid = packet.slid,
                                  .dlid = packet.dlid,
                                  .by_peer = subnet_ == nullptr || packet.by_host};
  put(client, host::FabricKind::kPacket, {reinterpret_cast<const u8*>(&header), sizeof(header)},
      packet.bytes);
}

// Sends the message in order, behind those that already wait.
void FabricServer::put(Client& client, host::FabricKind kind, std::span<const u8> header,
                       std::span<const u8> bytes) {
  if (client.backlog.empty()) {
    const int error = host::send_fabric_message(client.socket.get(), kind, header, bytes);
    if (error == 0) return;
    if (error != EAGAIN && error != EWOULDBLOCK) {
      client.is_gone = true;
      return;
    }
    client.stuck_since = host::monotonic_now();
  }
  if (client.backlog.size() >= kLongestBacklog) {
    ++undelivered_;
    return;
  }
  std::vector<u8>& waiting = client.backlog.emplace_back(sizeof(kind));
  std::memcpy(waiting.data(), &kind, sizeof(kind));
  waiting.insert(waiting.end(), header.begin(), header.end());
  waiting.insert(waiting.end(), bytes.begin(), bytes.end());
}

void FabricServer::flush(Client& client) {
  while (!client.backlog.empty() && !client.is_gone) {
    const auto message = host::FabricMessage::of(client.backlog.front());
    const int error = host::send_fabric_message(client.socket.get(), message->kind, message->body);
    if (error == EAGAIN || error == EWOULDBLOCK) return;
    if (error != 0) client.is_gone = true;
    client.backlog.pop_front();
    client.stuck_since = client.backlog.empty() ? Time::never() : host::monotonic_now();
  }
}

// A credit that a full socket does not take is sent later.
void FabricServer::give_credit() {
  for (const fabric::LeftPacket& left : fabric_.left())
    for (const auto& client : clients_)
      if (client->number == left.owner) client->credit += left.bytes;
  fabric_.left().clear();
  for (const auto& client : clients_) {
    if (client->credit == 0 || client->is_gone) continue;
    if (tell(*client, host::FabricCredit{.bytes = client->credit})) client->credit = 0;
  }
}

// --- management of an InfiniBand subnet

bool FabricServer::take_management(Client& client, const host::FabricMessage& message) {
  const Time now = host::monotonic_now();
  if (const auto mad = message.as<host::FabricMAD>()) {
    on_mad(client, *mad, message.rest<host::FabricMAD>());
  } else if (const auto query = message.as<host::FabricPortQuery>()) {
    if (query->version != host::kFabricVersion ||
        query->host >= fabric_.scenario().plan.hosts.size())
      refuse(client, EPROTO, "the fabric's server is another one than at the start");
    else
      (void)tell(client, subnet_->attributes_of(query->host));
  } else if (const auto attach = message.as<host::FabricMADAttach>()) {
    on_mad_attach(client, *attach);
  } else if (const auto request = message.as<host::FabricMADRegister>()) {
    (void)tell(client, host::FabricMADRegistered{.error = subnet_->on_register(*request, now)});
  } else if (const auto cable = message.as<host::FabricCable>()) {
    on_cable(client, *cable);
  } else {
    return false;
  }
  return true;
}

void FabricServer::on_cable(Client& client, const host::FabricCable& cable) {
  const std::string name(cable.name.data(), strnlen(cable.name.data(), cable.name.size()));
  if (cable.version != host::kFabricVersion)
    return refuse(client, EPROTO, "the fabric's server is of another version of Verbena");
  const fabric::Plan& plan = fabric_.scenario().plan;
  const std::vector<u32> links = links_of(plan, name);
  if (links.empty())
    return refuse(client, ENOENT, fmt::format("there is no link or node {}", name));
  const auto node = std::ranges::find(plan.names, name);
  const bool is_of_power =
      cable.change == host::FabricChange::kPowerOff || cable.change == host::FabricChange::kPowerOn;
  if (is_of_power && node == plan.names.end())
    return refuse(client, ENOENT, fmt::format("there is no node {}", name));
  if (is_of_power)
    subnet_->set_power(static_cast<u32>(node - plan.names.begin()),
                       cable.change == host::FabricChange::kPowerOn, host::monotonic_now());
  else
    for (const u32 link : links) change_link(cable, link);
  (void)tell(client, host::FabricCableChanged{.links = static_cast<u32>(links.size())});
}

void FabricServer::change_link(const host::FabricCable& cable, u32 link) {
  switch (cable.change) {
    case host::FabricChange::kUnplug:
    case host::FabricChange::kPlug:
      return subnet_->set_link(link, cable.change == host::FabricChange::kPlug,
                               host::monotonic_now());
    case host::FabricChange::kErrorRate:
      if (cable.error_rate >= 0 && cable.error_rate <= 1)
        subnet_->set_error_rate(link, cable.error_rate);
      return;
    case host::FabricChange::kOverrun: return subnet_->overrun(link, host::monotonic_now());
    case host::FabricChange::kCreditStall:
      return subnet_->stall_credits(link, host::monotonic_now());
    case host::FabricChange::kPowerOff:
    case host::FabricChange::kPowerOn: return;
  }
}

void FabricServer::on_mad_attach(Client& client, const host::FabricMADAttach& attach) {
  if (attach.version != host::kFabricVersion ||
      attach.host >= fabric_.scenario().plan.hosts.size() || client.role != Client::Role::kUnknown)
    return refuse(client, EPROTO, "the fabric's server is another one than at the start");
  client.role = Client::Role::kManagement;
  client.host = attach.host;
  client.claim = attach.claim;
  client.mad_client = subnet_->open_port(attach.host);
  (void)tell(client, host::FabricMADAttached{.client = client.mad_client});
}

// Parts come in order.
void FabricServer::on_mad(Client& client, const host::FabricMAD& mad, std::span<const u8> part) {
  const bool is_sound = client.role == Client::Role::kManagement &&
                        mad.total_bytes <= management::Datagram::kMaxBytes &&
                        mad.offset == client.mad.size() &&
                        mad.offset + part.size() <= mad.total_bytes;
  if (!is_sound) {
    client.is_gone = true;
    return;
  }
  client.mad.insert(client.mad.end(), part.begin(), part.end());
  if (client.mad.size() < mad.total_bytes) return;
  subnet_->on_mad(client.mad_client, mad, std::exchange(client.mad, {}), host::monotonic_now());
}

void FabricServer::deliver_mads() {
  if (subnet_ == nullptr) return;
  subnet_->on_timer(host::monotonic_now());
  while (const std::optional<management::ReceivedMAD> received = subnet_->poll_received())
    for (const auto& client : clients_)
      if (client->role == Client::Role::kManagement && client->mad_client == received->client)
        give_mad(*client, *received);
  tell_port_changes();
}

void FabricServer::tell_port_changes() {
  while (const std::optional<SubnetServer::Change> change = subnet_->poll_change()) {
    host::FabricPortAttributes port = subnet_->attributes_of(change->host);
    port.client_reregister = change->client_reregister;
    for (const auto& client : clients_)
      if (client->role == Client::Role::kDevice && client->host == change->host)
        put(*client, host::FabricPortAttributes::kKind,
            {reinterpret_cast<const u8*>(&port), sizeof(port)}, {});
  }
}

void FabricServer::give_mad(Client& client, const management::ReceivedMAD& received) {
  const management::Datagram& datagram = received.datagram;
  const bool is_late = received.status == management::ReceivedMAD::Status::kTimedOut;
  const std::span<const u8> bytes =
      std::span(datagram.mad).first(is_late ? MADHeader::kSize : datagram.message_bytes);
  host::FabricMAD header{.agent = received.agent,
                         .status = is_late ? ETIMEDOUT : 0,
                         .total_bytes = static_cast<u32>(bytes.size()),
                         .qp = datagram.source_qp,
                         .q_key = datagram.q_key,
                         .lid = datagram.slid,
                         .p_key_index = datagram.p_key_index,
                         .service_level = datagram.service_level};
  for (std::size_t at = 0; at < bytes.size(); at += host::kMADPart) {
    header.offset = static_cast<u32>(at);
    put(client, host::FabricKind::kMAD, {reinterpret_cast<const u8*>(&header), sizeof(header)},
        bytes.subspan(at, std::min<std::size_t>(host::kMADPart, bytes.size() - at)));
  }
}

void FabricServer::forget_the_gone() {
  for (const auto& client : clients_)
    if (client->is_gone && client->role == Client::Role::kManagement)
      subnet_->close_port(client->mad_client, host::monotonic_now());
  std::erase_if(clients_, [](const auto& client) { return client->is_gone; });
}

bool FabricServer::is_over(Time now) {
  if (config_.life == FabricServerConfig::Life::kUntilStopped) return false;
  if (!clients_.empty()) {
    alone_since_ = now;
    return false;
  }
  return now - alone_since_ > (next_client_ == 1 ? kFirstPatience : kLinger);
}

std::string FabricServer::text() const {
  std::string text;
  for (const fabric::NodeIndex node : fabric_.scenario().plan.hosts)
    if (packets_of(host_of_node_[node]) != 0) text += fabric_.text_of(node);
  text += fabric_.text();
  const Duration real = clock_.runs ? host::monotonic_now() - began_ : Duration{};
  if (undelivered_ != 0)
    text += fmt::format("fabric: {} packets were for no process\n", undelivered_);
  if (slipped_ > real / 100)
    text += fmt::format(
        "fabric: simulated time stood still for {:.0f} % of the time: a larger --scale "
        "needs less\n",
        100 * slipped_.seconds() / real.seconds());
  return text;
}

}  // namespace verbena::live
