#include "nvmf_program/stats_service.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace verbena::nvmf_program {
namespace {

constexpr int kBacklog = 8;

}  // namespace

StatsService::StatsService() {
  const std::string name = nvmf::stats_socket_name(getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // a 0 first: abstract
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const bool listens = fd_ >= 0 &&
                       bind(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                       listen(fd_, kBacklog) == 0;
  if (listens || fd_ < 0) return;
  close(fd_);
  fd_ = -1;
}

StatsService::~StatsService() {
  if (fd_ >= 0) close(fd_);
}

int StatsService::take_question() const {
  if (fd_ < 0) return -1;
  const int question = accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (question < 0) return -1;
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool may_ask = getsockopt(question, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
                       (peer.uid == 0 || peer.uid == geteuid());
  if (may_ask) return question;
  close(question);
  return -1;
}

// The text fits into the socket's buffer; what does not is lost, and the reader sees no end of
// line.
void StatsService::answer(int question, std::span<const nvmf::SubsystemStats> subsystems) {
  const std::string text = nvmf::to_text(subsystems);
  (void)send(question, text.data(), text.size(), MSG_NOSIGNAL);
  close(question);
}

}  // namespace verbena::nvmf_program
