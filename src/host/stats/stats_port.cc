#include "host/stats/stats_port.h"

#include <sys/uio.h>

#include <cstring>

#include "device/qp/queue_pair.h"
#include "host/os/kernel_socket.h"
#include "host/os/socket_option.h"
#include "host/stats/stats_name.h"

namespace verbena::host {
namespace {

QPSnapshot snapshot_of(const Device& device, const QueuePair* qp) {
  const QPAttributes& attributes = device.attributes_of(qp);
  QPSnapshot snapshot;
  snapshot.qpn = attributes.qpn;
  snapshot.type = attributes.type;
  snapshot.state = attributes.state;
  snapshot.sq_psn = attributes.sq_psn;
  snapshot.rq_psn = attributes.rq_psn;
  if (is_connected(attributes.type)) {
    snapshot.dest_qpn = attributes.dest_qp;
    snapshot.source = attributes.path.source;
    snapshot.peer = attributes.path.destination;
  }
  if (const ProtectionDomain* const pd = device.init_of(qp).pd) snapshot.pd = pd->table_slot();
  snapshot.traffic = device.traffic_of(qp);
  snapshot.transport = device.counters_of(qp);
  return snapshot;
}

void add_qps(const Device& device, QPN first, StatsAnswer& answer) {
  const QueuePair* qp = device.find_qp_from(first);
  while (qp != nullptr && answer.qps.size() < StatsAnswer::kMaxQPs) {
    answer.qps.push_back(snapshot_of(device, qp));
    qp = device.find_qp_from(QPN{answer.qps.back().qpn.value + 1});
  }
  if (qp != nullptr) answer.adapter.next = device.attributes_of(qp).qpn.value;
}

void add_objects(const Device& device, const StatsQuestion& question, StatsAnswer& answer) {
  const auto kind = static_cast<ObjectKind>(static_cast<u32>(question.subject) - 1);
  u32 place = question.first;
  answer.objects.resize(StatsAnswer::kMaxObjects);
  answer.objects.resize(device.list_objects(kind, place, answer.objects));
  if (place != kNoPlace) answer.adapter.next = place;
}

AdapterSnapshot identity_of(const LocalAddress& address, u32 slot) {
  AdapterSnapshot identity;
  identity.slot = slot;
  identity.device = snapshot_name(address.device_name);
  identity.interface = snapshot_name(address.interface);
  identity.ipv4 = address.ipv4.value_or(GID{});
  identity.ipv6 = address.ipv6.value_or(GID{});
  return identity;
}

}  // namespace

StatsAnswer take_snapshot(const AdapterSnapshot& identity, const Device& device,
                          const LinkCounters& link, const StatsQuestion& question, Time now) {
  StatsAnswer answer{.nonce = question.nonce,
                     .adapter = identity,
                     .subject = question.subject,
                     .qps = {},
                     .objects = {}};
  answer.adapter.qp_count = device.qp_count();
  for (u32 kind = 0; kind < kObjectKinds; ++kind)
    answer.adapter.object_counts[kind] = device.object_count(static_cast<ObjectKind>(kind));
  answer.adapter.taken_ns = now.ns();
  answer.adapter.counters = device.counters();
  answer.adapter.link = link;
  if (question.subject == StatsSubject::kQPs)
    add_qps(device, QPN{question.first}, answer);
  else
    add_objects(device, question, answer);
  return answer;
}

std::optional<StatsPort> StatsPort::open(const LocalAddress& address, u32 slot) {
  Descriptor socket = open_kernel_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
  const AbstractAddress name(StatsName{.user = ::geteuid(), .slot = slot}.to_string());
  if (!socket.is_open() || !set_option(socket.get(), SOL_SOCKET, SO_PASSCRED, 1) ||
      ::bind(socket.get(), name.data(), name.size) != 0)
    return std::nullopt;
  return StatsPort(std::move(socket), identity_of(address, slot));
}

void StatsPort::serve(const Device& device, const LinkCounters& link, u32 contexts, Time now) {
  identity_.context_count = contexts;
  for (u32 i = 0; i < kMaxQuestions && receive(); ++i) {
    if (!question_) continue;
    const std::vector<u8> bytes = take_snapshot(identity_, device, link, *question_, now).encode();
    (void)::sendto(fd(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                   reinterpret_cast<const sockaddr*>(&asker_), asker_size_);
  }
}

bool StatsPort::receive() {
  if (!socket_.is_open()) return false;
  alignas(cmsghdr) std::array<u8, CMSG_SPACE(sizeof(ucred))> control;
  std::array<u8, StatsQuestion::kSize + 1> bytes;  // longer ones show
  iovec iov{.iov_base = bytes.data(), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_name = &asker_;
  message.msg_namelen = sizeof(asker_);
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return false;
  asker_size_ = message.msg_namelen;
  const std::optional<ucred> sender = sender_of(message);
  const bool allowed = sender && (sender->uid == ::geteuid() || sender->uid == 0);
  question_ = allowed
                  ? StatsQuestion::decode(std::span(bytes).first(static_cast<std::size_t>(size)))
                  : std::nullopt;
  return true;
}

}  // namespace verbena::host
