#include "abi/paths/port_counter.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstring>
#include <ctime>

#include "host/stats/messages.h"
#include "host/stats/snapshot.h"

namespace verbena::abi::paths {
namespace {

constexpr i64 kPatienceMs = 500;

// Takes the last component off.
std::string_view take_last(std::string_view& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {};
  std::string_view last = path;
  last.remove_prefix(slash + 1);
  path.remove_suffix(path.size() - slash);
  return last;
}

i64 now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return i64{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// "0000:0000:...": 16 bytes. Zeros: there is no such file.
std::array<u8, 16> gid_in(std::string_view port, const char* file) {
  std::array<u8, 16> gid{};
  char path[PATH_MAX], text[64] = {};
  const std::size_t length = std::strlen(file);
  if (port.size() + length >= sizeof(path)) return gid;
  std::memcpy(path, port.data(), port.size());
  std::memcpy(path + port.size(), file, length + 1);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return gid;
  const ssize_t size = ::read(fd, text, sizeof(text) - 1);
  ::close(fd);
  const char* const end = text + std::max<ssize_t>(size, 0);
  const char* at = text;
  for (u8& byte : gid) {
    if (at < end && *at == ':') ++at;
    if (end - at < 2) return {};
    std::from_chars(at, at + 2, byte, 16);
    at += 2;
  }
  return gid;
}

int open_socket() {
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  sockaddr_un anywhere{};
  anywhere.sun_family = AF_UNIX;
  if (fd < 0 || (::setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0 &&
                 ::bind(fd, reinterpret_cast<sockaddr*>(&anywhere), sizeof(sa_family_t)) == 0))
    return fd;
  ::close(fd);
  return -1;
}

// visit(name) for each name in the abstract namespace that begins with the prefix.
template <typename Visit>
void for_each_name(std::string_view prefix, Visit&& visit) {
  const int file = ::open("/proc/net/unix", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  char buffer[8192];
  std::size_t held = 0;
  while (true) {
    const ssize_t size = ::read(file, buffer + held, sizeof(buffer) - held);
    if (size <= 0) break;
    std::string_view text(buffer, held + static_cast<std::size_t>(size));
    for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      std::string_view name = text.substr(0, end);
      const std::size_t at = name.rfind(" @");
      if (at != std::string_view::npos) {
        name.remove_prefix(at + 2);
        if (name.starts_with(prefix)) visit(name);
      }
      text.remove_prefix(end + 1);
    }
    held = text.size() < sizeof(buffer) ? text.size() : 0;  // a longer line is none of ours
    std::memmove(buffer, text.data(), held);
  }
  ::close(file);
}

// "verbena-stats-1000-"
struct NamesOfThisUser {
  NamesOfThisUser() {
    constexpr std::string_view kPrefix = "verbena-stats-";
    std::memcpy(text, kPrefix.data(), kPrefix.size());
    char* const end = std::to_chars(text + kPrefix.size(), text + 30, ::geteuid()).ptr;
    *end = '-';
    size = static_cast<std::size_t>(end + 1 - text);
  }
  char text[32];
  std::size_t size = 0;
};

bool ask(int socket, std::string_view name, u64 nonce) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof(to.sun_path)) return false;
  std::memcpy(to.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  // No QP comes behind the last number: the counters are all that is wanted.
  const host::StatsQuestionBytes question{.nonce = nonce, .first_qpn = 0xffffff};
  return ::sendto(socket, &question, sizeof(question), MSG_DONTWAIT | MSG_NOSIGNAL,
                  reinterpret_cast<sockaddr*>(&to), size) >= 0;
}

const ucred* sender_of(msghdr& message) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c))
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
      return reinterpret_cast<const ucred*>(CMSG_DATA(c));
  return nullptr;
}

}  // namespace

std::optional<PortCounter> PortCounter::of(std::string_view real_path) {
  std::string_view rest = real_path;
  const std::string_view name = take_last(rest), folder = take_last(rest);
  const std::string_view port = rest;
  if (take_last(rest).empty() || take_last(rest) != "ports") return std::nullopt;
  const std::string_view device = take_last(rest);
  PortCounter counter;
  if (device.empty() || device.size() >= counter.device_.size()) return std::nullopt;
  std::copy(device.begin(), device.end(), counter.device_.begin());
  for (const NamedCounter& known : counter_table())
    if (known.name == name && name_of(known.folder) == folder) counter.counter_ = &known;
  for (const NamedEngineCounter& known : engine_counter_table())
    if (known.name == name && name_of(CounterFolder::kHWCounters) == folder)
      counter.engine_counter_ = &known;
  if (counter.counter_ == nullptr && counter.engine_counter_ == nullptr) return std::nullopt;
  counter.addresses_ = {gid_in(port, "/gids/0"), gid_in(port, "/gids/2")};  // of each family
  return counter;
}

u64 PortCounter::value() const {
  const int socket = open_socket();
  if (socket < 0) return 0;
  const i64 deadline = now_ms() + kPatienceMs;
  const auto nonce = static_cast<u64>(deadline) << 20 ^ static_cast<u64>(::getpid());
  u32 asked = 0, answered = 0;
  Sums sums;
  ask_all(socket, nonce, asked);
  while (answered < asked && !sums.has_own) {
    pollfd waiting{.fd = socket, .events = POLLIN, .revents = 0};
    const i64 left = deadline - now_ms();
    if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) <= 0) break;
    if (receive(socket, nonce, sums)) ++answered;
  }
  ::close(socket);
  return sums.has_own ? sums.own : sums.all;
}

void PortCounter::ask_all(int socket, u64 nonce, u32& asked) const {
  const NamesOfThisUser names;
  for_each_name({names.text, names.size}, [&](std::string_view name) {
    if (ask(socket, name, nonce)) ++asked;
  });
}

// False: it was no answer.
bool PortCounter::receive(int socket, u64 nonce, Sums& sums) const {
  struct {
    host::StatsAnswerHeader header;
    host::AdapterSnapshot adapter;
  } answer;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  iovec iov{.iov_base = &answer, .iov_len = sizeof(answer)};
  msghdr message{};
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t size = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  const ucred* const sender = size < 0 ? nullptr : sender_of(message);
  if (sender == nullptr || sender->uid != ::geteuid()) return false;
  const host::StatsAnswerHeader& header = answer.header;
  if (size < ssize_t{sizeof(header)} || header.magic != host::kStatsAnswerMagic ||
      header.nonce != nonce)
    return false;
  if (size != ssize_t{sizeof(answer)} || header.version != host::kStatsVersion ||
      header.adapter_size != sizeof(answer.adapter) || header.qp_size != sizeof(host::QPSnapshot))
    return true;  // of another version
  const host::AdapterSnapshot& adapter = answer.adapter;
  if (!is_of_this_device(adapter.device, adapter.ipv4.bytes, adapter.ipv6.bytes)) return true;
  const u64 value = value_in(adapter.counters);
  sums.all += value;
  if (sender->pid == ::getpid()) {
    sums.own += value;
    sums.has_own = true;
  }
  return true;
}

bool PortCounter::is_of_this_device(const Name& device, const Address& ipv4,
                                    const Address& ipv6) const {
  const Address none{};
  return device == device_ &&
         std::any_of(addresses_.begin(), addresses_.end(), [&](const Address& own) {
           return own != none && (own == ipv4 || own == ipv6);
         });
}

u64 PortCounter::value_in(const Counters& counters) const {
  return counter_ != nullptr ? counter_->value(counters)
                             : counters.transport.*(engine_counter_->member);
}

}  // namespace verbena::abi::paths
