#include "host/stats/stats_reader.h"

#include <poll.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <tuple>

#include "host/os/clock.h"
#include "host/os/kernel_socket.h"
#include "host/os/random.h"
#include "host/os/socket_option.h"

namespace verbena::host {

std::vector<StatsName> stats_names_in(std::string_view proc_net_unix, uid_t user) {
  std::vector<StatsName> names;
  std::istringstream lines{std::string(proc_net_unix)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find_last_of(' ');
    if (at == std::string::npos || line.compare(at, 2, " @") != 0) continue;
    const std::optional<StatsName> name = StatsName::parse(std::string_view(line).substr(at + 2));
    if (!name || (user != 0 && name->user != user)) continue;
    if (std::ranges::find(names, *name) == names.end()) names.push_back(*name);
  }
  return names;
}

StatsReader::StatsReader(Descriptor socket)
    : socket_(std::move(socket)), buffer_(kMaxStatsAnswerSize + 1) {}

Expected<StatsReader> StatsReader::open() {
  Descriptor socket = open_kernel_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
  sockaddr_un anywhere{};  // the kernel finds a name to be answered at
  anywhere.sun_family = AF_UNIX;
  if (!socket.is_open() || !set_option(socket.get(), SOL_SOCKET, SO_PASSCRED, 1) ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&anywhere), sizeof(sa_family_t)) != 0)
    return failure(errno, std::string("cannot open a Unix socket: ") + std::strerror(errno));
  return StatsReader(std::move(socket));
}

Expected<Observation> StatsReader::observe() {
  std::ifstream file("/proc/net/unix");
  if (!file) return failure(ENOENT, "cannot read /proc/net/unix: is /proc mounted?");
  std::ostringstream text;
  text << file.rdbuf();
  std::vector<Query> queries;
  for (const StatsName& name : stats_names_in(text.str(), ::geteuid()))
    queries.push_back({.found = {.pid = 0, .name = name, .adapter = {}, .qps = {}},
                       .was_silent = std::ranges::find(silent_, name) != silent_.end()});

  for (std::size_t i = 0; i < queries.size(); i += kMaxInFlight) {
    std::vector<Query*> some;
    for (std::size_t k = i; k < std::min(i + kMaxInFlight, queries.size()); ++k)
      some.push_back(&queries[k]);
    ask_until_done(std::move(some));
  }

  Observation observation;
  for (Query& query : queries)
    if (query.done)
      observation.adapters.push_back(std::move(query.found));
    else if (!query.gone)
      observation.silent.push_back(query.found.name);
  silent_ = observation.silent;
  std::ranges::sort(observation.adapters, {}, [](const ObservedAdapter& a) {
    return std::tuple(a.pid, a.adapter.device, a.name.slot);
  });
  return observation;
}

void StatsReader::ask_until_done(std::vector<Query*> queries) {
  const Time start = monotonic_now();
  std::erase_if(queries, [this](Query* query) { return !ask(*query); });
  while (!queries.empty()) {
    const bool all_were_silent = std::ranges::all_of(queries, &Query::was_silent);
    const Time deadline = start + (all_were_silent ? kPatienceWithSilent : kPatience);
    const Duration left = deadline - monotonic_now();
    pollfd waiting{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const int milliseconds = static_cast<int>(left.ns() / 1'000'000) + 1;
    if (left <= Duration() || ::poll(&waiting, 1, milliseconds) < 0) break;
    receive(queries);
    std::erase_if(queries, [](const Query* q) { return q->done || q->other_version; });
  }
  for (Query* query : queries) (void)ask(*query);  // it may have ended with the question unread
}

// Returns false if no answer will come.
bool StatsReader::ask(Query& query) {
  query.nonce = random_u64();
  const AbstractAddress to(query.found.name.to_string());
  const auto question =
      StatsQuestion{.nonce = query.nonce, .first = query.first, .subject = StatsSubject::kQPs}
          .encode();
  const bool sent = ::sendto(socket_.get(), question.data(), question.size(),
                             MSG_DONTWAIT | MSG_NOSIGNAL, to.data(), to.size) >= 0;
  query.gone = !sent && errno == ECONNREFUSED;
  return sent;
}

void StatsReader::receive(std::vector<Query*>& waiting) {
  alignas(cmsghdr) std::array<u8, CMSG_SPACE(sizeof(ucred))> control;
  iovec iov{.iov_base = buffer_.data(), .iov_len = buffer_.size()};
  msghdr message{};
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  const std::optional<ucred> sender = size < 0 ? std::nullopt : sender_of(message);
  if (!sender) return;
  const auto bytes = std::span<const u8>(buffer_).first(static_cast<std::size_t>(size));
  const auto asked = std::ranges::find_if(waiting, [&](const Query* query) {
    // Anybody can have bound the name: only the user whose it is may answer.
    return query->nonce == StatsAnswer::nonce_of(bytes) && query->found.name.user == sender->uid;
  });
  if (asked != waiting.end()) take(**asked, StatsAnswer::decode(bytes), sender->pid);
}

void StatsReader::take(Query& query, std::optional<StatsAnswer> answer, pid_t sender) {
  query.other_version = !answer;
  if (!answer) return;
  ObservedAdapter& found = query.found;
  if (query.first == 0) {
    found.pid = sender;
    found.adapter = answer->adapter;
  }
  found.qps.insert(found.qps.end(), answer->qps.begin(), answer->qps.end());
  const u32 next = answer->adapter.next;
  query.done = next <= query.first;
  query.first = next;
  if (!query.done && !ask(query)) query.done = true;  // it ends: what is known is better than none
}

std::string process_name(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  if (pid == 0 || !std::getline(file, name)) return "?";
  std::ranges::replace_if(
      name, [](char c) { return c < ' ' || c > '~'; }, '?');
  return name;
}

}  // namespace verbena::host
