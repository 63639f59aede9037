#include "abi/rdmacm/rsocket/datagram_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>

#include <array>
#include <string_view>

#include "abi/rdmacm/connection_path.h"
#include "host/os/kernel_socket.h"

namespace verbena::rdmacm::rsocket {
namespace {

constexpr std::size_t kMostDestinations = 4096;  // then all are learnt again
constexpr u32 kIntroductionsAtOnce = 16;
constexpr u32 kLooksWithoutUDP = 64;  // while there is enough else to do
constexpr std::chrono::seconds kLinger{1};

struct StoredEndpoint {
  explicit StoredEndpoint(const SocketEndpoint& endpoint) : size(endpoint.size()) {
    endpoint.store(storage);
  }
  [[nodiscard]] const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr_storage storage{};
  socklen_t size;
};

ibv_ah* make_handle(const Route& route) {
  const ConnectionPath path{.local = route.source,
                            .remote = route.destination,
                            .local_gid_index = route.device->gid_index(route.source),
                            .mtu = route.device->identity().mtu};
  ibv_ah_attr attr = path.address();
  return ibv_create_ah(route.device->pd, &attr);
}

}  // namespace

std::size_t DatagramSocket::EndpointHash::operator()(const SocketEndpoint& endpoint) const {
  const auto& bytes = endpoint.address.bytes;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return std::hash<std::string_view>()(text) ^ endpoint.port;
}

bool DatagramSocket::SameEndpoint::operator()(const SocketEndpoint& a,
                                              const SocketEndpoint& b) const {
  return a.address == b.address && a.port == b.port && a.scope_id == b.scope_id;
}

DatagramSocket::~DatagramSocket() { forget_destinations(); }

std::shared_ptr<DatagramSocket> DatagramSocket::create(int domain, int type) {
  host::Descriptor wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake.is_open()) return nullptr;
  host::Descriptor udp = host::open_kernel_socket(domain, SOCK_DGRAM | (type & SOCK_CLOEXEC));
  if (!udp.is_open()) return nullptr;
  const int file_flags = (type & SOCK_NONBLOCK) != 0 ? O_NONBLOCK : 0;
  return std::make_shared<DatagramSocket>(domain, std::move(wake), file_flags, std::move(udp));
}

// --- addresses

int DatagramSocket::bind(const sockaddr* address, socklen_t length) {
  const Lock lock(mutex_);
  return ::bind(udp_.get(), address, length);
}

std::optional<SocketEndpoint> DatagramSocket::bound() const {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (::getsockname(udp_.get(), reinterpret_cast<sockaddr*>(&name), &size) != 0)
    return std::nullopt;
  const auto endpoint = SocketEndpoint::from(reinterpret_cast<const sockaddr*>(&name));
  return endpoint && endpoint->port != 0 ? endpoint : std::nullopt;
}

// UDP uses 127.0.0.1 as the source for a loopback address, whatever address our device has.
int DatagramSocket::bind_for(const Route& route, const SocketEndpoint& destination) {
  if (bound()) return 0;
  SocketEndpoint own{.family = domain_};
  if (domain_ == AF_INET6) own.address = {};
  const SocketEndpoint source{.family = domain_, .address = route.source};
  if (source.is_ipv4() && destination.is_ipv4() && source.is_loopback()) own = source;
  const StoredEndpoint name(own);
  return ::bind(udp_.get(), name.data(), name.size);
}

tl::expected<Route, int> DatagramSocket::route_to(const SocketEndpoint& endpoint) const {
  LocalPlace from;
  if (const auto own = bound()) {
    const auto place = find_local(*own);
    if (!place) return tl::unexpected(place.error());
    from = *place;
  }
  return find_route(from, endpoint, PortSpace::kUDP);
}

int DatagramSocket::connect(const sockaddr* address, socklen_t length) {
  const Lock lock(mutex_);
  peer_.reset();
  if (address != nullptr && address->sa_family == AF_UNSPEC)
    return ::connect(udp_.get(), address, length);
  if (!is_whole(address, length)) return fail(EINVAL);
  const auto to = SocketEndpoint::from(address);
  if (!to) return fail(EAFNOSUPPORT);
  if (destination(*to) == nullptr || ::connect(udp_.get(), address, length) != 0) return -1;
  peer_ = to;
  return 0;
}

int DatagramSocket::local_name(NameBuffer name) {
  const Lock lock(mutex_);
  return ::getsockname(udp_.get(), name.address, name.length);
}

int DatagramSocket::peer_name(NameBuffer name) {
  const Lock lock(mutex_);
  return ::getpeername(udp_.get(), name.address, name.length);
}

// --- destinations

// nullptr and errno: none can be made.
DatagramSocket::Destination* DatagramSocket::destination(const SocketEndpoint& endpoint) {
  const auto known = destinations_.find(endpoint);
  return known != destinations_.end() ? &known->second : add_destination(endpoint);
}

DatagramSocket::Destination* DatagramSocket::add_destination(const SocketEndpoint& endpoint) {
  const auto route = route_to(endpoint);
  if (!route) return abi::fail(route.error());
  if (bind_for(*route, endpoint) != 0) return nullptr;
  const auto own = bound();
  DatagramPort* const port = port_at(*route);
  if (!own || port == nullptr) return nullptr;
  SocketEndpoint source = *own;
  if (source.is_any()) {
    const bool is_of_family = route->source.is_ipv4() == endpoint.is_ipv4();
    source.address = is_of_family ? route->source : endpoint.address;
  }
  if (destinations_.size() >= kMostDestinations) forget_destinations();
  Destination& made = destinations_[endpoint];
  made.endpoint = endpoint;
  made.source = source;
  made.port = port;
  return &made;
}

void DatagramSocket::forget_destinations() {
  for (const auto& [endpoint, destination] : destinations_)
    if (destination.handle != nullptr) ibv_destroy_ah(destination.handle);
  destinations_.clear();
}

DatagramPort* DatagramSocket::port_at(const Route& route) {
  for (const auto& port : ports_)
    if (&port->device() == route.device && port->address() == route.source) return port.get();
  auto port = std::make_unique<DatagramPort>();
  if (port->open(*route.device, route.source, settings_) != 0) return nullptr;
  ports_.push_back(std::move(port));
  wake_all();  // there is one more to sleep on
  return ports_.back().get();
}

// --- by UDP

// The count of data bytes, or -1 and errno.
ssize_t DatagramSocket::introduce(const Destination& to, bool has_data, IOCursor& data) const {
  const SocketEndpoint place{.family = to.endpoint.family, .address = to.port->address()};
  const Introduction introduction{
      .has_data = has_data,
      .qpn = to.port->qpn(),
      .place = place.family == AF_INET && !place.is_ipv4() ? SocketEndpoint{} : place};
  const HeaderBytes header = introduction.encode();
  std::array<u8, sizeof header.bytes + DatagramPort::kSlot> bytes;
  const std::size_t length = data.left();
  std::memcpy(bytes.data(), header.bytes.data(), header.size);
  data.read(bytes.data() + header.size, length);
  const StoredEndpoint name(to.endpoint);
  const ssize_t sent = ::sendto(udp_.get(), bytes.data(), header.size + length,
                                MSG_DONTWAIT | MSG_NOSIGNAL, name.data(), name.size);
  return sent < 0 ? -1 : static_cast<ssize_t>(length);
}

void DatagramSocket::take_introductions() {
  std::array<u8, DatagramPort::kSlot + sizeof(HeaderBytes::bytes)> bytes;
  for (u32 i = 0; i < kIntroductionsAtOnce; ++i) {
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    const ssize_t length = ::recvfrom(udp_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT,
                                      reinterpret_cast<sockaddr*>(&name), &size);
    if (length < 0 && errno == EAGAIN) return;
    if (length < 0) continue;  // it tells of what we have sent
    const auto from = SocketEndpoint::from(reinterpret_cast<const sockaddr*>(&name));
    const auto packet = std::span<const u8>(bytes).first(static_cast<std::size_t>(length));
    const auto introduction = Introduction::decode(packet);
    if (from && introduction)
      on_introduction(*from, *introduction, packet.subspan(introduction->size()));
  }
}

void DatagramSocket::on_introduction(const SocketEndpoint& from, const Introduction& introduction,
                                     std::span<const u8> data) {
  Destination* const peer = destination(from);
  if (peer == nullptr) return;
  learn(*peer, introduction);
  if (!introduction.has_data) return;
  IOCursor nothing({});
  (void)introduce(*peer, false, nothing);  // lost, like any: it asks again
  peer->port->take_in(DatagramHeader{.source = from}.encode(), data);
}

void DatagramSocket::learn(Destination& of, const Introduction& introduction) {
  const SocketEndpoint& place = introduction.place.is_any() ? of.endpoint : introduction.place;
  if (of.handle != nullptr && of.qpn == introduction.qpn && of.place.address == place.address)
    return;
  const auto route = route_to(place);
  DatagramPort* const port = route ? port_at(*route) : nullptr;
  ibv_ah* const handle = port != nullptr ? make_handle(*route) : nullptr;
  if (handle == nullptr) return;
  if (of.handle != nullptr) ibv_destroy_ah(of.handle);
  of.handle = handle;
  of.port = port;
  of.place = place;
  of.qpn = introduction.qpn;
}

// --- datagrams

// The destination with its QP known or not, and room to send to it. nullptr and errno.
DatagramSocket::Destination* DatagramSocket::ready_destination(Lock& lock, const SocketEndpoint& to,
                                                               bool nonblocking) {
  Destination* found = destination(to);
  if (found == nullptr) return nullptr;
  if (found->handle == nullptr) {
    take_introductions();
    return destination(to);
  }
  if (found->port->can_send()) return found;
  if (wait(lock, nonblocking, [&] { return can_send() || !writing_; }) != 0) return nullptr;
  return writing_ ? destination(to) : abi::fail(EPIPE);
}

ssize_t DatagramSocket::send(std::span<const iovec> parts, int flags, const sockaddr* to,
                             socklen_t length) {
  Lock lock(mutex_);
  if (to != nullptr && !is_whole(to, length)) return fail(EINVAL);
  const auto endpoint = to != nullptr ? SocketEndpoint::from(to) : peer_;
  if (!endpoint) return fail(to != nullptr ? EAFNOSUPPORT : EDESTADDRREQ);
  if (!writing_) return fail(EPIPE);
  Destination* const found = ready_destination(lock, *endpoint, is_nonblocking(flags));
  if (found == nullptr) return -1;
  const DatagramHeader header{.source = found->source};
  IOCursor data(parts);
  const std::size_t all = data.left();
  if (header.size() + all > found->port->longest()) return fail(EMSGSIZE);
  if (found->handle == nullptr) return introduce(*found, true, data);
  if (found->port->send(header.encode(), data, found->handle, found->qpn) != 0) return -1;
  return static_cast<ssize_t>(all);
}

ssize_t DatagramSocket::receive(std::span<const iovec> parts, int flags, NameBuffer from) {
  Lock lock(mutex_);
  for (;;) {
    const auto has_come = [&] { return port_with_data() != nullptr || !reading_ || is_closed_; };
    if (wait(lock, is_nonblocking(flags), has_come) != 0) return -1;
    DatagramPort* const port = port_with_data();
    if (port == nullptr) return is_closed_ ? fail(EBADF) : 0;
    const std::span<const u8> datagram = port->received();
    const auto header = DatagramHeader::decode(datagram);
    if (!header) {
      port->drop_received();
      continue;
    }
    IOCursor to(parts);
    const std::size_t length = std::min(to.left(), datagram.size() - header->size());
    to.write(datagram.data() + header->size(), length);
    const StoredEndpoint name(header->source);
    if ((flags & MSG_PEEK) == 0) port->drop_received();
    if (from.address != nullptr && give_name(*name.data(), from) != 0) return -1;
    return static_cast<ssize_t>(length);
  }
}

DatagramPort* DatagramSocket::port_with_data() const {
  const auto found =
      std::ranges::find_if(ports_, [](const auto& port) { return !port->received().empty(); });
  return found == ports_.end() ? nullptr : found->get();
}

bool DatagramSocket::can_send() const {
  return std::ranges::all_of(ports_, [](const auto& port) { return port->can_send(); });
}

bool DatagramSocket::is_sent() const {
  return std::ranges::all_of(ports_, [](const auto& port) { return port->is_sent(); });
}

// --- waiting

void DatagramSocket::look() {
  bool any = false;
  for (const auto& port : ports_) any = port->progress() || any;
  if (!any || ++looks_ % kLooksWithoutUDP == 0) take_introductions();
  if (any) wake_all();
}

short DatagramSocket::ready_now(short events) {
  int ready = 0;
  if (port_with_data() != nullptr || !reading_) ready |= POLLIN;
  if (can_send() || !writing_) ready |= POLLOUT;
  return static_cast<short>(ready & events);
}

void DatagramSocket::arm(std::vector<pollfd>& to) {
  to.push_back({.fd = udp_.get(), .events = POLLIN, .revents = 0});
  for (const auto& port : ports_) {
    (void)port->completions().arm();
    to.push_back({.fd = port->completions().fd(), .events = POLLIN, .revents = 0});
  }
}

bool DatagramSocket::drain() {
  bool any = false;
  for (const auto& port : ports_) any = port->completions().drain() || any;
  return any;
}

// --- the end

int DatagramSocket::shutdown(int how) {
  const Lock lock(mutex_);
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return fail(EINVAL);
  if (!peer_) return fail(ENOTCONN);
  if (how != SHUT_WR) reading_ = false;
  if (how != SHUT_RD) writing_ = false;
  wake_all();
  return 0;
}

void DatagramSocket::close() {
  const int error = errno;
  Lock lock(mutex_);
  reading_ = writing_ = false;
  is_closed_ = true;
  wake_all();
  (void)wait(
      lock, false, [&] { return is_sent(); }, Clock::now() + kLinger);
  errno = error;
}

// --- options

int DatagramSocket::set_option(OptionKey key, const void* value, socklen_t length) {
  const Lock lock(mutex_);
  if (!is_setting(key)) return ::setsockopt(udp_.get(), key.first, key.second, value, length);
  if (ports_.empty()) return set_setting(settings_, key, value, length);
  return key.first == SOL_SOCKET ? 0 : fail(EINVAL);  // too late; of sizes no harm is done
}

int DatagramSocket::get_option(OptionKey key, void* value, socklen_t* length) {
  const Lock lock(mutex_);
  if (is_setting(key)) return get_setting(settings_, key, value, length);
  return ::getsockopt(udp_.get(), key.first, key.second, value, length);
}

}  // namespace verbena::rdmacm::rsocket
