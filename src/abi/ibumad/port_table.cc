#include "abi/ibumad/port_table.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "host/os/no_cancellation.h"

namespace verbena::abi::umad {
namespace {

using host::failure;

constexpr int kSendPatienceMs = 2000;  // for a server that is descheduled

struct Table {
  std::mutex mutex;
  std::array<std::shared_ptr<Port>, UMAD_MAX_PORTS> ports;
};
Table& table() {
  static Table* const the_table = new Table;  // threads may use it until the process has ended
  return *the_table;
}

// The server has ended: what a kernel says of a device that is gone.
int errno_of_dead_port(int error) { return error == EPIPE || error == ECONNRESET ? EIO : error; }

// Waits while the socket is full. Returns 0, or an errno.
int send_patiently(int socket, const host::FabricMAD& header, std::span<const u8> part) {
  for (;;) {
    const int error = host::send_fabric(socket, header, part);
    if (error != EAGAIN && error != EWOULDBLOCK) return errno_of_dead_port(error);
    pollfd waiting{.fd = socket, .events = POLLOUT, .revents = 0};
    if (::poll(&waiting, 1, kSendPatienceMs) == 0) return ETIMEDOUT;
  }
}

void fill_address(const host::FabricMAD& header, ib_mad_addr& address) {
  address = {};
  address.qpn = htobe32(header.qp);
  address.qkey = htobe32(header.q_key);
  address.lid = htobe16(header.lid);
  address.sl = header.service_level;
  address.path_bits = header.path_bits;
  address.pkey_index = header.p_key_index;
}

}  // namespace

host::Expected<host::FabricPlace> own_place() {
  const char* const text = std::getenv(host::kFabricVariable);
  if (text == nullptr || *text == 0) return failure(ENODEV, "no fabric");
  const auto place = host::FabricPlace::parse(text);
  if (!place) return failure(EINVAL, "VERBENA_FABRIC is no place");
  return *place;
}

host::Expected<host::FabricPortAttributes> own_attributes() {
  const host::Expected<host::FabricPlace> place = own_place();
  if (!place) return tl::unexpected(place.error());
  const host::Expected<host::Descriptor> socket = host::connect_to_fabric(place->name);
  if (!socket) return tl::unexpected(socket.error());
  return host::ask_fabric<host::FabricPortAttributes>(socket->get(),
                                                      host::FabricPortQuery{.host = place->host});
}

host::Expected<std::shared_ptr<Port>> Port::open() {
  const host::Expected<host::FabricPlace> place = own_place();
  if (!place) return tl::unexpected(place.error());
  auto port = std::make_shared<Port>();
  for (host::Descriptor* const socket : {&port->mads_, &port->control_}) {
    host::Expected<host::Descriptor> connected = host::connect_to_fabric(place->name);
    if (!connected) return tl::unexpected(connected.error());
    *socket = std::move(*connected);
  }
  const auto attached = host::ask_fabric<host::FabricMADAttached>(
      port->mads_.get(), host::FabricMADAttach{.host = place->host, .claim = place->claim});
  if (!attached) return tl::unexpected(attached.error());
  port->client_ = attached->client;
  return port;
}

int Port::register_at_server(const host::FabricMADRegister& request) {
  const auto done = host::ask_fabric<host::FabricMADRegistered>(control_.get(), request);
  return done ? done->error : errno_of_dead_port(done.error().error);
}

int Port::add_agent(host::FabricMADRegister request) {
  const host::NoCancellation no_cancellation;
  const std::lock_guard lock(control_mutex_);
  const auto free = std::ranges::find(has_agent_, false);
  if (free == has_agent_.end()) return -ENOMEM;
  request.client = client_;
  request.agent = static_cast<u32>(free - has_agent_.begin());
  if (const int error = register_at_server(request); error != 0) return -error;
  *free = true;
  return static_cast<int>(request.agent);
}

int Port::remove_agent(u32 agent) {
  const host::NoCancellation no_cancellation;
  const std::lock_guard lock(control_mutex_);
  if (agent >= has_agent_.size() || !has_agent_[agent]) return -EINVAL;
  has_agent_[agent] = false;
  return -register_at_server({.client = client_, .agent = agent, .registers = 0});
}

int Port::send(ib_user_mad& mad, std::size_t bytes, u32 agent, u32 timeout_ms, u32 retries) {
  const host::NoCancellation no_cancellation;
  const std::lock_guard lock(send_mutex_);
  host::FabricMAD header{.agent = agent,
                         .timeout_ms = timeout_ms,
                         .retries = retries,
                         .total_bytes = static_cast<u32>(bytes),
                         .qp = be32toh(mad.addr.qpn),
                         .q_key = be32toh(mad.addr.qkey),
                         .lid = be16toh(mad.addr.lid),
                         .p_key_index = mad.addr.pkey_index,
                         .service_level = mad.addr.sl,
                         .path_bits = mad.addr.path_bits};
  for (std::size_t at = 0; at < bytes; at += host::kMADPart) {
    header.offset = static_cast<u32>(at);
    const std::span<const u8> part(mad.data + at,
                                   std::min<std::size_t>(host::kMADPart, bytes - at));
    if (const int error = send_patiently(mads_.get(), header, part); error != 0) return -error;
  }
  return 0;
}

// As far as they have come: 0, when a MAD is whole, -EWOULDBLOCK before, or another -errno.
int Port::take_parts() {
  std::array<u8, host::kMaxFabricMessage> buffer;
  while (!is_complete_) {
    const ssize_t size = ::recv(mads_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return -EWOULDBLOCK;
    if (size <= 0) return size < 0 ? -errno_of_dead_port(errno) : -EIO;  // the server has ended
    const auto message =
        host::FabricMessage::of(std::span(buffer).first(static_cast<std::size_t>(size)));
    const auto part = message ? message->as<host::FabricMAD>() : std::nullopt;
    if (!part) continue;
    if (part->offset == 0) received_.clear();
    header_ = *part;
    const std::span<const u8> bytes = message->rest<host::FabricMAD>();
    received_.insert(received_.end(), bytes.begin(), bytes.end());
    is_complete_ = received_.size() >= header_.total_bytes;
  }
  return 0;
}

// A MAD that is longer than the buffer waits for a larger one: -ENOSPC, and `length` says how
// large.
int Port::receive(ib_user_mad& mad, int& length) {
  const host::NoCancellation no_cancellation;  // while the lock is held
  const std::lock_guard lock(receive_mutex_);
  if (const int error = take_parts(); error != 0) return error;
  const auto room = static_cast<std::size_t>(std::max(length, 0));
  length = static_cast<int>(received_.size());
  if (received_.size() > room) return -ENOSPC;
  mad.agent_id = header_.agent;
  mad.status = static_cast<u32>(header_.status);
  mad.timeout_ms = mad.retries = 0;
  mad.length = static_cast<u32>(sizeof(mad) + received_.size());
  fill_address(header_, mad.addr);
  std::ranges::copy(received_, mad.data);
  is_complete_ = false;
  return static_cast<int>(header_.agent);
}

bool Port::has_mad() {
  const host::NoCancellation no_cancellation;
  const std::lock_guard lock(receive_mutex_);
  return is_complete_;
}

int add_port(std::shared_ptr<Port> port) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  const auto free = std::ranges::find(all.ports, nullptr);
  if (free == all.ports.end()) return -ENOMEM;
  *free = std::move(port);
  return static_cast<int>(free - all.ports.begin());
}

std::shared_ptr<Port> port_of(int id) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  if (id < 0 || static_cast<std::size_t>(id) >= all.ports.size()) return nullptr;
  return all.ports[static_cast<std::size_t>(id)];
}

std::shared_ptr<Port> remove_port(int id) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  if (id < 0 || static_cast<std::size_t>(id) >= all.ports.size()) return nullptr;
  return std::exchange(all.ports[static_cast<std::size_t>(id)], nullptr);
}

}  // namespace verbena::abi::umad
