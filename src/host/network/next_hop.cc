#include "host/network/next_hop.h"

#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "host/network/socket_address.h"
#include "host/os/clock.h"
#include "host/os/kernel_socket.h"

namespace verbena::host {
namespace {

constexpr u16 kDiscardPort = 9;
constexpr Duration kFirstInterval = us(200), kLongestInterval = ms(20), kAskInterval = sec(1);
constexpr u16 kThereStates =
    NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_NOARP | NUD_PERMANENT;

std::span<const u8> ip_bytes(const GID& gid) {
  return std::span(gid.bytes).subspan(gid.is_ipv4() ? 12 : 0);
}

GID gid_of_bytes(std::span<const u8> ip) {
  GID gid = ip.size() == 4 ? GID::from_ipv4(0) : GID{};
  std::ranges::copy(ip, gid.bytes.end() - static_cast<std::ptrdiff_t>(ip.size()));
  return gid;
}

// A question to the kernel's tables: a header of its kind, then attributes; and the answer.
template <typename Header>
class Question {
 public:
  Question(u16 type, const Header& header) {
    message_.nl.nlmsg_type = type;
    message_.nl.nlmsg_flags = NLM_F_REQUEST;
    message_.nl.nlmsg_len = NLMSG_LENGTH(sizeof(Header));
    std::memcpy(message_.rest.data(), &header, sizeof header);
  }
  void add(u16 type, std::span<const u8> value) {
    rtattr attribute{};
    attribute.rta_type = type;
    attribute.rta_len = static_cast<u16>(RTA_LENGTH(value.size()));
    u8* const at = message_.rest.data() + NLMSG_ALIGN(message_.nl.nlmsg_len) - NLMSG_HDRLEN;
    std::memcpy(at, &attribute, sizeof attribute);
    std::memcpy(at + RTA_LENGTH(0), value.data(), value.size());
    message_.nl.nlmsg_len = NLMSG_ALIGN(message_.nl.nlmsg_len) + RTA_ALIGN(attribute.rta_len);
  }
  // The kernel answers before send() returns. Returns nullopt if it gives no answer.
  [[nodiscard]] std::optional<Header> ask() {
    const Descriptor socket = open_kernel_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC);
    const u16 expected = static_cast<u16>(message_.nl.nlmsg_type - 2);  // RTM_GETx to RTM_NEWx
    if (::send(socket.get(), &message_, message_.nl.nlmsg_len, 0) < 0) return std::nullopt;
    const ssize_t got = ::recv(socket.get(), &message_, sizeof message_, MSG_DONTWAIT);
    if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(Header)))) return std::nullopt;
    size_ = std::min<std::size_t>(static_cast<std::size_t>(got), message_.nl.nlmsg_len);
    if (message_.nl.nlmsg_type != expected || size_ < NLMSG_LENGTH(sizeof(Header)))
      return std::nullopt;
    Header header;
    std::memcpy(&header, message_.rest.data(), sizeof header);
    return header;
  }
  // Returns the value of the answer's attribute of this type, or an empty span if there is none.
  [[nodiscard]] std::span<const u8> attribute(u16 type) const {
    std::span<const u8> left = std::span(message_.rest).first(size_ - NLMSG_HDRLEN);
    left = left.subspan(std::min<std::size_t>(NLMSG_ALIGN(sizeof(Header)), left.size()));
    while (left.size() >= sizeof(rtattr)) {
      rtattr attribute;
      std::memcpy(&attribute, left.data(), sizeof attribute);
      if (attribute.rta_len < sizeof attribute || attribute.rta_len > left.size()) break;
      if (attribute.rta_type == type)
        return left.subspan(RTA_LENGTH(0), attribute.rta_len - RTA_LENGTH(0));
      left = left.subspan(std::min<std::size_t>(RTA_ALIGN(attribute.rta_len), left.size()));
    }
    return {};
  }

 private:
  struct {
    nlmsghdr nl{};
    std::array<u8, 4096> rest{};
  } message_;
  std::size_t size_ = NLMSG_HDRLEN;
};

std::span<const u8> bytes_of(const u32& value) {
  return {reinterpret_cast<const u8*>(&value), sizeof value};
}

}  // namespace

std::optional<NextHop> NextHop::towards(const GID& destination, u32 interface_index) {
  rtmsg header{};
  header.rtm_family = static_cast<u8>(family_of(destination));
  header.rtm_dst_len = static_cast<u8>(ip_bytes(destination).size() * 8);
  Question question(RTM_GETROUTE, header);
  question.add(RTA_DST, ip_bytes(destination));
  if (interface_index != 0) question.add(RTA_OIF, bytes_of(interface_index));
  const std::optional<rtmsg> route = question.ask();
  const std::span<const u8> interface = question.attribute(RTA_OIF);
  if (!route || route->rtm_type != RTN_UNICAST || interface.size() != sizeof(u32))
    return std::nullopt;
  NextHop hop;
  hop.destination_ = hop.neighbour_ = destination;
  std::memcpy(&hop.interface_index_, interface.data(), sizeof(u32));
  const std::span<const u8> gateway = question.attribute(RTA_GATEWAY);
  if (gateway.size() == ip_bytes(destination).size()) hop.neighbour_ = gid_of_bytes(gateway);
  return hop;
}

Presence NextHop::presence() const {
  ndmsg header{};
  header.ndm_family = static_cast<u8>(family_of(neighbour_));
  header.ndm_ifindex = static_cast<int>(interface_index_);
  Question question(RTM_GETNEIGH, header);
  question.add(NDA_DST, ip_bytes(neighbour_));
  const std::optional<ndmsg> entry = question.ask();
  if (!entry || entry->ndm_state == NUD_NONE) return Presence::kNotKnown;
  return (entry->ndm_state & kThereStates) != 0 ? Presence::kThere : Presence::kAsked;
}

std::optional<Neighbour> NextHop::neighbour() const {
  ndmsg header{};
  header.ndm_family = static_cast<u8>(family_of(neighbour_));
  header.ndm_ifindex = static_cast<int>(interface_index_);
  Question question(RTM_GETNEIGH, header);
  question.add(NDA_DST, ip_bytes(neighbour_));
  const std::optional<ndmsg> entry = question.ask();
  const std::span<const u8> address = question.attribute(NDA_LLADDR);
  Neighbour found;
  if (!entry || (entry->ndm_state & kThereStates) == 0 || address.size() != found.mac.bytes.size())
    return std::nullopt;
  std::ranges::copy(address, found.mac.bytes.begin());
  found.is_stale = (entry->ndm_state & NUD_STALE) != 0;
  return found;
}

void NextHop::ask() const {
  const Descriptor socket = open_kernel_socket(family_of(destination_), SOCK_DGRAM | SOCK_CLOEXEC);
  const SocketAddress to(destination_, kDiscardPort, interface_index_);
  (void)::sendto(socket.get(), nullptr, 0, MSG_DONTWAIT, to.data(), to.size());
}

Expected<std::unique_ptr<NextHopWait>> NextHopWait::start(const NextHop& hop, Duration patience,
                                                          std::function<void(bool)> done) {
  const Time now = monotonic_now();
  std::unique_ptr<NextHopWait> wait(new NextHopWait(hop, now + patience, std::move(done)));
  wait->next_question_ = now + kAskInterval;
  wait->interval_ = kFirstInterval;
  NextHopWait* const self = wait.get();
  auto thread = HelperThread::start({}, {.serve = [self] { self->look(); }});
  if (!thread) return tl::unexpected(thread.error());
  wait->thread_ = std::move(*thread);
  wait->thread_->wake_at(now + kFirstInterval, now);
  return wait;
}

// The kernel gives up after a few questions, and asks again when something is sent.
void NextHopWait::look() {
  const Time now = monotonic_now();
  if (hop_.presence() == Presence::kThere) return done_(true);
  if (now >= deadline_) return done_(false);
  if (now >= next_question_) {
    hop_.ask();
    next_question_ = now + kAskInterval;
  }
  thread_->wake_at(std::min(now + interval_, deadline_), now);
  interval_ = std::min(interval_ * 2, kLongestInterval);
}

}  // namespace verbena::host
