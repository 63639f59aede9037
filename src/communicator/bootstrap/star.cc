#include "communicator/bootstrap/star.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

namespace verbena::coll {
namespace {

constexpr u64 kMagic = 0x314c4c4f43425256;  // "VRBCOLL1"
constexpr u32 kVersion = 1;
constexpr u32 kMaxJobLength = 256, kMaxTextLength = 4096;
constexpr u64 kMaxBlob = 64u << 20;
constexpr i64 kPatienceWithNewcomers = kSecond;  // for one hello
constexpr std::string_view kStoreKey = "verbena-coll/address";

// All ranks of a job have the same byte order and word size.
struct Hello {
  u64 magic = kMagic;
  u32 version = kVersion, rank = 0, ranks = 0, job_length = 0;
};
struct Reply {
  u64 magic = kMagic;
  u32 accepted = 0, text_length = 0;
};
struct FrameHeader {
  u32 type = 0, text_length = 0;
  i32 rank = -1;
  u32 comm = 0;
  u64 operation = 0, word = 0;
};

template <typename T>
std::string_view raw(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
template <typename T>
T read_as(std::string_view bytes) {
  T value;
  std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
  return value;
}

std::string printable(std::string_view bytes) {
  std::string text;
  for (const char c : bytes)
    if (c >= ' ' && c <= '~') text.push_back(c);
  return text;
}

std::string list_of(const std::vector<u32>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

std::string place_of(const Rendezvous& at) {
  switch (at.form) {
    case Rendezvous::Form::kTCP: return "tcp://" + at.host + ":" + std::to_string(at.port);
    case Rendezvous::Form::kFile: return "file://" + at.path;
    case Rendezvous::Form::kStore: return "store://";
  }
  return "";
}

struct Place {
  std::string host;
  u16 port;
};

std::optional<Place> read_place(const std::string& text) {
  const std::size_t space = text.find(' ');
  if (space == std::string::npos) return std::nullopt;
  u16 port = 0;
  std::from_chars(text.data() + space + 1, text.data() + text.size(), port);
  if (port == 0) return std::nullopt;
  return Place{text.substr(0, space), port};
}

std::optional<Place> read_file(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return read_place(line);
}

// Fails if another rank 0 that is alive has written it. A file that nobody stands behind is
// replaced.
Expected<void> write_file(const std::string& path, const std::string& text) {
  if (const auto other = read_file(path)) {
    const auto alive = connect_to(other->host, other->port, now_ns() + kSecond);
    if (alive)
      return failure(VERBENA_COLL_RENDEZVOUS,
                     "file://" + path + ": another job uses this name (rank 0 at " + other->host +
                         ":" + std::to_string(other->port) + ")");
  }
  const std::string temporary = path + "." + std::to_string(getpid());
  const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.is_open() ||
      ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      rename(temporary.c_str(), path.c_str()) != 0)
    return failure(VERBENA_COLL_RENDEZVOUS, "cannot write " + path + ": " + std::strerror(errno));
  return {};
}

std::string frame_of(const Notice& notice) {
  const std::string text = notice.text.substr(0, kMaxTextLength);
  const FrameHeader header{.type = static_cast<u32>(notice.type),
                           .text_length = static_cast<u32>(text.size()),
                           .rank = notice.rank,
                           .comm = notice.comm,
                           .operation = notice.operation,
                           .word = notice.word};
  return std::string(raw(header)) + text;
}

Expected<void> reply_to(int socket, bool accepted, const std::string& text, i64 deadline) {
  const Reply reply{.accepted = accepted ? 1u : 0u, .text_length = static_cast<u32>(text.size())};
  return send_all(socket, std::string(raw(reply)) + text, deadline);
}

Expected<std::string> receive_blob(int socket, i64 deadline) {
  const auto length = receive_all(socket, sizeof(u64), deadline);
  if (!length) return length;
  const u64 bytes = read_as<u64>(*length);
  if (bytes > kMaxBlob) return failure(VERBENA_COLL_RENDEZVOUS, "an exchange is too long");
  return receive_all(socket, bytes, deadline);
}

Expected<void> send_blob(int socket, const std::string& blob, i64 deadline) {
  const u64 length = blob.size();
  return send_all(socket, std::string(raw(length)) + blob, deadline);
}

}  // namespace

Star::~Star() {
  if (!path_.empty()) unlink(path_.c_str());
}

Expected<Star> Star::open(const Rendezvous& at, const verbena_coll_store* store,
                          const std::string& own_host, i64 deadline) {
  Star star;
  star.rank_ = at.rank;
  star.peers_.resize(at.ranks);
  if (at.rank != kHub) {
    if (const auto joined = star.join(at, store, deadline); !joined)
      return tl::unexpected(joined.error());
    return star;
  }
  const bool is_given = at.form == Rendezvous::Form::kTCP;
  if (at.ranks == 1 && !is_given) return star;
  u16 port = 0;
  auto listener = listen_on(is_given ? at.host : own_host, is_given ? at.port : u16{0}, &port);
  if (!listener)
    return failure(VERBENA_COLL_RENDEZVOUS,
                   listener.error().text + (is_given ? " (does another job use it?)" : ""));
  star.listener_ = std::move(*listener);
  const std::string place = own_host + " " + std::to_string(port);
  if (at.form == Rendezvous::Form::kFile) {
    if (const auto written = write_file(at.path, place + "\n"); !written)
      return tl::unexpected(written.error());
    star.path_ = at.path;
  }
  if (at.form == Rendezvous::Form::kStore &&
      store->set(store->context, std::string(kStoreKey).c_str(), place.c_str()) != 0)
    return failure(VERBENA_COLL_RENDEZVOUS, "the store does not take rank 0's address");
  if (const auto gathered = star.gather_ranks(at, deadline); !gathered)
    return tl::unexpected(gathered.error());
  return star;
}

Expected<void> Star::gather_ranks(const Rendezvous& at, i64 deadline) {
  while (true) {
    std::vector<u32> missing;
    for (u32 rank = 1; rank < peers_.size(); ++rank)
      if (!peers_[rank].socket.is_open()) missing.push_back(rank);
    if (missing.empty()) return {};
    auto socket = accept_from(listener_.get(), deadline);
    if (!socket)
      return failure(VERBENA_COLL_RENDEZVOUS,
                     place_of(at) + ": " + list_of(missing) + " did not join in time",
                     static_cast<int>(missing.front()));
    const auto admitted =
        admit(std::move(*socket), at, std::min(deadline, now_ns() + kPatienceWithNewcomers));
    if (!admitted) return admitted;
  }
}

// Ignores a peer that does not speak this protocol: a port scanner must not end a job.
Expected<void> Star::admit(Descriptor socket, const Rendezvous& at, i64 deadline) {
  const auto bytes = receive_all(socket.get(), sizeof(Hello), deadline);
  if (!bytes) return {};
  const Hello hello = read_as<Hello>(*bytes);
  if (hello.magic != kMagic || hello.job_length > kMaxJobLength) return {};
  const auto job = receive_all(socket.get(), hello.job_length, deadline);
  if (!job) return {};
  std::string why;
  if (hello.version != kVersion)
    why = "rank 0 runs another version of Verbena";
  else if (*job != at.job)
    why = "this is job '" + printable(at.job) + "', not '" + printable(*job) + "'";
  else if (hello.ranks != at.ranks)
    why = "rank 0 expects " + std::to_string(at.ranks) + " ranks, rank " +
          std::to_string(hello.rank) + " expects " + std::to_string(hello.ranks);
  else if (hello.rank == 0 || hello.rank >= at.ranks || peers_[hello.rank].socket.is_open())
    why = "there is a rank " + std::to_string(hello.rank) + " already: do two jobs use this name?";
  if (!why.empty()) {
    static_cast<void>(reply_to(socket.get(), false, why, deadline));
    // Two sizes can never become one job; the others are strangers.
    if (*job == at.job && hello.ranks != at.ranks)
      return failure(VERBENA_COLL_RENDEZVOUS, why, static_cast<int>(hello.rank));
    return {};
  }
  if (reply_to(socket.get(), true, "", deadline)) peers_[hello.rank].socket = std::move(socket);
  return {};
}

Expected<void> Star::join(const Rendezvous& at, const verbena_coll_store* store, i64 deadline) {
  std::optional<Place> place;
  if (at.form == Rendezvous::Form::kTCP) place = Place{at.host, at.port};
  if (at.form == Rendezvous::Form::kStore) {
    char text[256] = {};
    if (store->get(store->context, std::string(kStoreKey).c_str(), text, sizeof text) != 0)
      return failure(VERBENA_COLL_RENDEZVOUS, "the store has no address of rank 0", 0);
    place = read_place(text);
  }
  std::string last = "the file is not there";
  Descriptor socket;
  for (auto pause = std::chrono::milliseconds(1); !socket.is_open();
       pause = std::min(pause * 2, std::chrono::milliseconds(100))) {
    if (at.form == Rendezvous::Form::kFile) place = read_file(at.path);
    if (place) {
      auto connected = connect_to(place->host, place->port, deadline);
      if (connected)
        socket = std::move(*connected);
      else
        last = connected.error().text;
    }
    if (socket.is_open()) break;
    if (now_ns() + std::chrono::nanoseconds(pause).count() >= deadline)
      return failure(VERBENA_COLL_RENDEZVOUS, "no rank 0 at " + place_of(at) + " in time: " + last,
                     0);
    std::this_thread::sleep_for(pause);
  }
  const Hello hello{
      .rank = at.rank,
      .ranks = at.ranks,
      .job_length = static_cast<u32>(std::min<std::size_t>(at.job.size(), kMaxJobLength))};
  const std::string job = at.job.substr(0, kMaxJobLength);
  if (const auto sent = send_all(socket.get(), std::string(raw(hello)) + job, deadline); !sent)
    return sent;
  const auto bytes = receive_all(socket.get(), sizeof(Reply), deadline);
  if (!bytes)
    return failure(VERBENA_COLL_RENDEZVOUS,
                   place_of(at) + " does not answer as rank 0: " + bytes.error().text, 0);
  const Reply reply = read_as<Reply>(*bytes);
  if (reply.magic != kMagic || reply.text_length > kMaxTextLength)
    return failure(VERBENA_COLL_RENDEZVOUS,
                   place_of(at) + " is no rank 0: it says '" + printable(*bytes) + "'", 0);
  const auto text = receive_all(socket.get(), reply.text_length, deadline);
  if (!text) return tl::unexpected(text.error());
  if (reply.accepted == 0)
    return failure(VERBENA_COLL_RENDEZVOUS, place_of(at) + ": " + printable(*text), 0);
  peers_[kHub].socket = std::move(socket);
  return {};
}

Expected<std::vector<std::string>> Star::exchange(const std::string& mine, i64 deadline) {
  std::vector<std::string> all(peers_.size());
  const auto lost = [](u32 rank, const Error& error) {
    return failure(VERBENA_COLL_RENDEZVOUS,
                   "rank " + std::to_string(rank) + " is lost during the rendezvous: " + error.text,
                   static_cast<int>(rank));
  };
  if (!is_hub()) {
    const int hub = peers_[kHub].socket.get();
    if (const auto sent = send_blob(hub, mine, deadline); !sent) return lost(kHub, sent.error());
    for (std::string& blob : all) {
      auto received = receive_blob(hub, deadline);
      if (!received) return lost(kHub, received.error());
      blob = std::move(*received);
    }
    return all;
  }
  all[kHub] = mine;
  for (u32 rank = 1; rank < peers_.size(); ++rank) {
    auto received = receive_blob(peers_[rank].socket.get(), deadline);
    if (!received) return lost(rank, received.error());
    all[rank] = std::move(*received);
  }
  for (u32 rank = 1; rank < peers_.size(); ++rank)
    for (const std::string& blob : all)
      if (const auto sent = send_blob(peers_[rank].socket.get(), blob, deadline); !sent)
        return lost(rank, sent.error());
  return all;
}

void Star::send(u32 to, const Notice& notice) {
  if (!is_open(to)) return;
  const std::string frame = frame_of(notice);
  static_cast<void>(
      ::send(peers_[to].socket.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

void Star::send_to_all(const Notice& notice) {
  if (!is_hub()) return send(kHub, notice);
  for (u32 rank = 1; rank < peers_.size(); ++rank) send(rank, notice);
}

std::vector<int> Star::descriptors() const {
  std::vector<int> open;
  for (const Peer& peer : peers_)
    if (peer.socket.is_open()) open.push_back(peer.socket.get());
  if (listener_.is_open()) open.push_back(listener_.get());
  return open;
}

std::vector<Notice> Star::read() {
  std::vector<Notice> notices;
  for (u32 rank = 0; rank < peers_.size(); ++rank)
    if (is_open(rank)) read_from(rank, notices);
  if (listener_.is_open()) refuse_newcomer();
  return notices;
}

void Star::refuse_newcomer() {
  const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  const Descriptor socket(fd);
  static_cast<void>(reply_to(fd, false, "the job is complete: do two jobs use this name?",
                             now_ns() + kSecond / 100));
}

void Star::read_from(u32 rank, std::vector<Notice>& notices) {
  Peer& peer = peers_[rank];
  char buffer[4096];
  bool broke = false;
  while (true) {
    const ssize_t got = recv(peer.socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) {
      peer.received.append(buffer, static_cast<std::size_t>(got));
      continue;
    }
    broke = got == 0 || (errno != EAGAIN && errno != EINTR);
    break;
  }
  while (peer.received.size() >= sizeof(FrameHeader)) {
    const auto header = read_as<FrameHeader>(peer.received);
    const std::size_t length = sizeof header + std::min(header.text_length, kMaxTextLength);
    if (peer.received.size() < length) break;
    Notice notice{.type = static_cast<Notice::Type>(header.type),
                  .rank = header.rank,
                  .comm = header.comm,
                  .operation = header.operation,
                  .word = header.word,
                  .text = peer.received.substr(sizeof header, length - sizeof header)};
    peer.received.erase(0, length);
    forward(rank, notice);
    notices.push_back(std::move(notice));
  }
  if (!broke) return;
  peer.socket.close();
  const Notice died{.type = Notice::Type::kDied, .rank = static_cast<i32>(rank)};
  forward(rank, died);
  notices.push_back(died);
}

void Star::forward(u32 from, const Notice& notice) {
  if (!is_hub() || notice.type == Notice::Type::kStuck || notice.type == Notice::Type::kAnswer)
    return;
  for (u32 rank = 1; rank < peers_.size(); ++rank)
    if (rank != from) send(rank, notice);
}

}  // namespace verbena::coll
