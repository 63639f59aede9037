#include "abi/paths/running_programs.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstddef>
#include <cstring>
#include <ctime>

#include "host/stats/messages.h"

namespace verbena::abi::paths {
namespace {

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

const ucred* sender_of(msghdr& message) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c))
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
      return reinterpret_cast<const ucred*>(CMSG_DATA(c));
  return nullptr;
}

// Returns false if the records have another size, or are not as many as the header says.
template <typename Record>
bool take_records(const host::StatsAnswerHeader& header, std::span<const u8> in,
                  std::span<const Record>& out) {
  if (header.record_size != sizeof(Record) || in.size() % sizeof(Record) != 0 ||
      header.record_count != in.size() / sizeof(Record))
    return false;
  out = {reinterpret_cast<const Record*>(in.data()), header.record_count};
  return true;
}

}  // namespace

// --- which device

std::optional<DeviceIdentity> DeviceIdentity::of(std::string_view device, std::string_view port) {
  DeviceIdentity identity;
  if (device.empty() || device.size() >= identity.device_.size()) return std::nullopt;
  std::copy(device.begin(), device.end(), identity.device_.begin());
  identity.addresses_ = {gid_in(port, "/gids/0"), gid_in(port, "/gids/2")};
  return identity;
}

bool DeviceIdentity::is_of(const host::AdapterSnapshot& adapter) const {
  const Address none{};
  return adapter.device == device_ &&
         std::any_of(addresses_.begin(), addresses_.end(), [&](const Address& own) {
           return own != none && (own == adapter.ipv4.bytes || own == adapter.ipv6.bytes);
         });
}

// --- asking

RunningPrograms::RunningPrograms(i64 patience_ms)
    : socket_(open_socket()),
      deadline_ms_(now_ms() + patience_ms),
      nonce_(static_cast<u64>(deadline_ms_) << 20 ^ static_cast<u64>(::getpid())) {}

RunningPrograms::~RunningPrograms() {
  if (socket_ >= 0) ::close(socket_);
}

bool RunningPrograms::ask(const sockaddr_un& to, socklen_t size, u32 first) {
  const host::StatsQuestionBytes question{
      .nonce = nonce_, .first = first, .subject = static_cast<u32>(subject_)};
  return ::sendto(socket_, &question, sizeof(question), MSG_DONTWAIT | MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&to), size) >= 0;
}

void RunningPrograms::ask_all(host::StatsSubject subject, u32 first) {
  subject_ = subject;
  if (socket_ < 0) return;
  const NamesOfThisUser names;
  for_each_name({names.text, names.size}, [&](std::string_view name) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    if (name.size() + 1 > sizeof(to.sun_path)) return;
    std::memcpy(to.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (ask(to, size, first)) ++asked_;
  });
}

void RunningPrograms::ask_again(u32 first) {
  if (ask(last_, last_size_, first)) ++asked_;
}

bool RunningPrograms::is_waiting() const {
  if (answered_ >= asked_) return false;
  pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
  const i64 left = deadline_ms_ - now_ms();
  return left > 0 && ::poll(&waiting, 1, static_cast<int>(left)) > 0;
}

ssize_t RunningPrograms::receive(std::span<u8> buffer, pid_t& from) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  iovec iov{.iov_base = buffer.data(), .iov_len = buffer.size()};
  msghdr message{};
  message.msg_name = &last_;
  message.msg_namelen = sizeof(last_);
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t size = ::recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  const ucred* const sender = size < 0 ? nullptr : sender_of(message);
  if (sender == nullptr || sender->uid != ::geteuid()) return -1;
  last_size_ = message.msg_namelen;
  from = sender->pid;
  return size;
}

std::optional<RunningPrograms::Answer> RunningPrograms::next(std::span<u8> buffer) {
  while (is_waiting()) {
    Answer answer{};
    const ssize_t received = receive(buffer, answer.pid);
    if (received < ssize_t{sizeof(host::StatsAnswerHeader)}) continue;
    const auto size = static_cast<std::size_t>(received);
    const auto& header = *reinterpret_cast<const host::StatsAnswerHeader*>(buffer.data());
    if (header.magic != host::kStatsAnswerMagic || header.nonce != nonce_) continue;
    ++answered_;
    constexpr std::size_t kFixed = sizeof(header) + sizeof(host::AdapterSnapshot);
    if (header.version != host::kStatsVersion || size < kFixed ||
        header.adapter_size != sizeof(host::AdapterSnapshot) ||
        header.subject != static_cast<u32>(subject_))
      continue;  // of another version
    answer.adapter = reinterpret_cast<const host::AdapterSnapshot*>(buffer.data() + sizeof(header));
    const std::span<const u8> records = buffer.first(size).subspan(kFixed);
    const bool is_understood = subject_ == host::StatsSubject::kQPs
                                   ? take_records(header, records, answer.qps)
                                   : take_records(header, records, answer.objects);
    if (!is_understood) continue;
    return answer;
  }
  return std::nullopt;
}

}  // namespace verbena::abi::paths
