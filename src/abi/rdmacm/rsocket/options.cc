// rsetsockopt, rgetsockopt: what both types have, and what stream rsockets have.
#include <infiniband/sa.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>

#include <cstring>

#include "abi/rdmacm/rsocket/stream_socket.h"

namespace verbena::rdmacm::rsocket {
namespace {

constexpr OptionKey kSendBuffer{SOL_SOCKET, SO_SNDBUF}, kReceiveBuffer{SOL_SOCKET, SO_RCVBUF};
constexpr OptionKey kRoute{SOL_RDMA, RDMA_ROUTE};

// Where the number of a setting is, and its limits.
struct Number {
  u32 Settings::*at;
  u32 least, most;
};

std::optional<Number> number_of(OptionKey key) {
  if (key == kSendBuffer) return Number{&Settings::send_bytes, kLeastBuffer, kMostBuffer};
  if (key == kReceiveBuffer) return Number{&Settings::receive_bytes, kLeastBuffer, kMostBuffer};
  if (key.first != SOL_RDMA) return std::nullopt;
  switch (key.second) {
    case RDMA_SQSIZE: return Number{&Settings::send_queue, kLeastQueue, kMostQueue};
    case RDMA_RQSIZE: return Number{&Settings::receive_queue, kLeastQueue, kMostQueue};
    case RDMA_INLINE: return Number{&Settings::inline_bytes, 0, kMostInline};
    case RDMA_IOMAPSIZE: return Number{&Settings::iomaps, 0, kMostIomaps};
    default: return std::nullopt;
  }
}

std::optional<int> int_of(const void* value, socklen_t length) {
  int number = 0;
  if (value == nullptr || length < sizeof number) return std::nullopt;
  std::memcpy(&number, value, sizeof number);
  return number;
}

int give_number(i64 number, void* value, socklen_t* length) {
  const int as_int = static_cast<int>(number);
  return give_value(&as_int, sizeof as_int, value, length);
}

}  // namespace

bool is_setting(OptionKey key) { return number_of(key).has_value(); }

int set_setting(Settings& settings, OptionKey key, const void* value, socklen_t length) {
  const auto number = number_of(key);
  const auto asked = int_of(value, length);
  if (!number) return fail(ENOPROTOOPT);
  if (!asked) return fail(EINVAL);
  const i64 wanted = key.first == SOL_SOCKET ? i64{*asked} * 2 : *asked;  // doubled, as Linux does
  u32& to = settings.*number->at;
  to = static_cast<u32>(std::clamp<i64>(wanted, number->least, number->most));
  if (number->at == &Settings::iomaps) to = unscaled(scaled(to));
  return 0;
}

int get_setting(const Settings& settings, OptionKey key, void* value, socklen_t* length) {
  const auto number = number_of(key);
  return number ? give_number(settings.*number->at, value, length) : fail(ENOPROTOOPT);
}

// --- stream rsockets

namespace {

constexpr OptionKey kKeepalive{SOL_SOCKET, SO_KEEPALIVE}, kKeepIdle{IPPROTO_TCP, TCP_KEEPIDLE};
constexpr OptionKey kReuseAddress{SOL_SOCKET, SO_REUSEADDR};
constexpr OptionKey kOnlyIPv6{IPPROTO_IPV6, IPV6_V6ONLY}, kTypeOfService{IPPROTO_IP, IP_TOS};
constexpr OptionKey kLingerOption{SOL_SOCKET, SO_LINGER}, kCongestion{IPPROTO_TCP, TCP_CONGESTION};

// Options that are kept, and given back. What else they do, if anything, set_kept() and linger()
// do.
bool is_kept(OptionKey key) {
  constexpr std::array kKept = {kReuseAddress,
                                kOnlyIPv6,
                                kTypeOfService,
                                kLingerOption,
                                kCongestion,
                                kRoute,
                                OptionKey{SOL_SOCKET, SO_OOBINLINE},
                                OptionKey{SOL_SOCKET, SO_BROADCAST},
                                OptionKey{SOL_SOCKET, SO_REUSEPORT},
                                OptionKey{IPPROTO_TCP, TCP_NODELAY},
                                OptionKey{IPPROTO_TCP, TCP_MAXSEG},
                                OptionKey{IPPROTO_TCP, TCP_KEEPINTVL},
                                OptionKey{IPPROTO_TCP, TCP_KEEPCNT}};
  return std::ranges::find(kKept, key) != kKept.end();
}

template <typename T>
int set_id_option(rdma_cm_id* id, int name, T value) {
  return rdma_set_option(id, RDMA_OPTION_ID, name, &value, sizeof value);
}

}  // namespace

int StreamSocket::set_option(OptionKey key, const void* value, socklen_t length) {
  const Lock lock(mutex_);
  if (value == nullptr) return fail(EFAULT);
  if (is_setting(key)) {
    if (stream_ == nullptr) return set_setting(settings_, key, value, length);
    return key.first == SOL_SOCKET ? 0 : fail(EINVAL);  // too late; of sizes no harm is done
  }
  if (is_kept(key)) return set_kept(key, value, length);
  if (key != kKeepalive && key != kKeepIdle) return fail(ENOPROTOOPT);
  const auto number = int_of(value, length);
  if (!number || (key == kKeepIdle && *number <= 0)) return fail(EINVAL);
  if (key == kKeepalive)
    keepalive_.turn(*number != 0);
  else
    keepalive_.set_idle(std::chrono::seconds(*number));
  return 0;
}

int StreamSocket::set_kept(OptionKey key, const void* value, socklen_t length) {
  const bool is_bytes = key == kCongestion || key == kRoute;
  const auto number = int_of(value, length);
  if (length == 0 || (!is_bytes && !number)) return fail(EINVAL);
  if (key == kLingerOption && length < sizeof(::linger)) return fail(EINVAL);
  if (key == kRoute && stream_ != nullptr) return fail(EINVAL);
  if (key == kReuseAddress || key == kOnlyIPv6 || key == kTypeOfService) {
    if (make_id() != 0) return -1;
    const bool is_late = state_ != State::kIdle;
    if (key == kReuseAddress && !is_late &&
        set_id_option(id_, RDMA_OPTION_ID_REUSEADDR, *number) != 0)
      return -1;
    if (key == kOnlyIPv6 && set_id_option(id_, RDMA_OPTION_ID_AFONLY, *number) != 0) return -1;
    if (key == kTypeOfService &&
        set_id_option(id_, RDMA_OPTION_ID_TOS, static_cast<u8>(*number)) != 0)
      return -1;
  }
  const u8* const bytes = static_cast<const u8*>(value);
  options_[key].assign(bytes, bytes + length);
  return 0;
}

int StreamSocket::get_option(OptionKey key, void* value, socklen_t* length) {
  const Lock lock(mutex_);
  if (value == nullptr || length == nullptr) return fail(EFAULT);
  if (is_setting(key)) return get_setting(settings_, key, value, length);
  if (key == kKeepalive) return give_number(keepalive_.is_on(), value, length);
  if (key == kKeepIdle) return give_number(keepalive_.idle().count(), value, length);
  if (key == kRoute && id_ != nullptr && id_->route.num_paths != 0)
    return give_route(value, length);
  if (is_kept(key)) return get_kept(key, value, length);
  if (key.first == SOL_SOCKET) {
    switch (key.second) {
      case SO_TYPE: return give_number(SOCK_STREAM, value, length);
      case SO_DOMAIN: return give_number(domain_, value, length);
      case SO_PROTOCOL: return give_number(IPPROTO_TCP, value, length);
      case SO_ACCEPTCONN: return give_number(state_ == State::kListening, value, length);
      case SO_ERROR: look(); return give_number(std::exchange(error_, 0), value, length);
      default: break;
    }
  }
  if (key == OptionKey{IPPROTO_TCP, TCP_INFO}) {
    tcp_info info{};
    info.tcpi_state = is_connected() ? TCP_ESTABLISHED : TCP_CLOSE;
    info.tcpi_snd_cwnd = settings_.send_queue;
    return give_value(&info, sizeof info, value, length);
  }
  return fail(ENOPROTOOPT);
}

int StreamSocket::get_kept(OptionKey key, void* value, socklen_t* length) const {
  if (key == OptionKey{IPPROTO_TCP, TCP_MAXSEG} && id_ != nullptr && id_->route.num_paths != 0)
    return give_number(1 << (7 + id_->route.path_rec->mtu), value, length);
  if (const auto found = options_.find(key); found != options_.end())
    return give_value(found->second.data(), found->second.size(), value, length);
  constexpr ::linger kNone{};
  if (key == kLingerOption) return give_value(&kNone, sizeof kNone, value, length);
  return give_number(0, value, length);
}

// As ibv_path_data, with the path in the network's order.
int StreamSocket::give_route(void* value, socklen_t* length) const {
  constexpr u8 kExactly = 2 << 6, kReversibleSinglePath = 0x81;
  if (*length < sizeof(ibv_path_data)) return fail(EINVAL);
  const ibv_sa_path_rec& record = *id_->route.path_rec;
  ibv_path_data data{};
  data.flags = record.preference;
  data.path.dgid = record.dgid;
  data.path.sgid = record.sgid;
  data.path.dlid = record.dlid;
  data.path.slid = record.slid;
  data.path.flowlabel_hoplimit = htobe32(be32toh(record.flow_label) << 8 | record.hop_limit);
  data.path.tclass = record.traffic_class;
  data.path.reversible_numpath = kReversibleSinglePath;
  data.path.pkey = record.pkey;
  data.path.qosclass_sl = htobe16(record.sl);
  data.path.mtu = static_cast<u8>(record.mtu | kExactly);
  data.path.rate = static_cast<u8>(record.rate | kExactly);
  data.path.packetlifetime = static_cast<u8>(record.packet_life_time | kExactly);
  return give_value(&data, sizeof data, value, length);
}

}  // namespace verbena::rdmacm::rsocket
