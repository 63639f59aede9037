// The round trip of a small message over a socket: UDP with both sides spinning (the least that a
// RoCEv2 packet on a UDP socket can take), TCP with both sides blocking, or TCP with both sides
// spinning (the same for an iWARP message).
//
// usage: pingpong udp|tcp|tcp-polling answer PORT        answers until silence or the end
//        ... ask ADDRESS PORT SIZE COUNT                 prints: the median half round trip in us
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "bench/limits/process.h"
#include "bench/tcp.h"

namespace {

constexpr double kSilence_s = 20;
constexpr std::size_t kLargest = 65536;

// Spins for a datagram; -1: silence.
ssize_t spin(int s, std::vector<std::uint8_t>& buffer, sockaddr_in& from) {
  const double start = limits::now_s();
  for (;;) {
    socklen_t length = sizeof from;
    const ssize_t n = recvfrom(s, buffer.data(), buffer.size(), MSG_DONTWAIT,
                               reinterpret_cast<sockaddr*>(&from), &length);
    if (n >= 0) return n;
    if (limits::now_s() - start > kSilence_s) return -1;
  }
}

enum class Waits { kBlocking, kPolling };

bool read_all(int s, std::uint8_t* to, std::size_t size, Waits waits) {
  const int flags = waits == Waits::kPolling ? MSG_DONTWAIT : 0;
  for (std::size_t got = 0; got < size;) {
    const ssize_t n = recv(s, to + got, size - got, flags);
    if (n < 0 && errno == EAGAIN) continue;
    if (n <= 0) return false;
    got += static_cast<std::size_t>(n);
  }
  return true;
}

int answer_udp(std::size_t port) {
  const int s = socket(AF_INET, SOCK_DGRAM, 0);
  const sockaddr_in here = tcp::at("0.0.0.0", port);
  limits::require(bind(s, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0, "bind");
  std::vector<std::uint8_t> buffer(kLargest);
  sockaddr_in from{};
  for (ssize_t n; (n = spin(s, buffer, from)) > 0;) {
    sendto(s, buffer.data(), static_cast<std::size_t>(n), 0, reinterpret_cast<sockaddr*>(&from),
           sizeof from);
  }
  return 0;
}

int answer_tcp(std::size_t port, Waits waits) {
  const int s = tcp::accept_one(port), on = 1;
  setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::uint32_t size = 0;  // the asker's first word
  if (!read_all(s, reinterpret_cast<std::uint8_t*>(&size), sizeof size, waits) || size > kLargest)
    return 1;
  std::vector<std::uint8_t> buffer(size);
  while (read_all(s, buffer.data(), size, waits)) {
    if (write(s, buffer.data(), size) != static_cast<ssize_t>(size)) return 1;
  }
  return 0;
}

void print_median(std::vector<double>& round_trips_s) {
  const auto middle = round_trips_s.begin() + static_cast<std::ptrdiff_t>(round_trips_s.size() / 2);
  std::nth_element(round_trips_s.begin(), middle, round_trips_s.end());
  std::printf("%.4f\n", *middle / 2 * 1e6);
}

int ask_udp(const char* address, std::size_t port, std::size_t size, std::size_t count) {
  const sockaddr_in there = tcp::at(address, port);
  const int s = socket(AF_INET, SOCK_DGRAM, 0);
  std::vector<std::uint8_t> buffer(kLargest);
  std::vector<double> times;
  sockaddr_in from{};
  for (std::size_t i = 0; i < count; ++i) {
    const double start = limits::now_s();
    sendto(s, buffer.data(), size, 0, reinterpret_cast<const sockaddr*>(&there), sizeof there);
    if (spin(s, buffer, from) < 0) return 1;
    times.push_back(limits::now_s() - start);
  }
  sendto(s, buffer.data(), 0, 0, reinterpret_cast<const sockaddr*>(&there), sizeof there);
  print_median(times);
  return 0;
}

int ask_tcp(const char* address, std::size_t port, std::size_t size, std::size_t count,
            Waits waits) {
  const int s = tcp::connect_to(address, port), on = 1;
  setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto word = static_cast<std::uint32_t>(size);
  limits::require(write(s, &word, sizeof word) == sizeof word, "write");
  std::vector<std::uint8_t> buffer(size);
  std::vector<double> times;
  for (std::size_t i = 0; i < count; ++i) {
    const double start = limits::now_s();
    limits::require(write(s, buffer.data(), size) == static_cast<ssize_t>(size), "write");
    limits::require(read_all(s, buffer.data(), size, waits), "read");
    times.push_back(limits::now_s() - start);
  }
  print_median(times);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool udp = argc > 1 && std::strcmp(argv[1], "udp") == 0;
  const bool polls = argc > 1 && std::strcmp(argv[1], "tcp-polling") == 0;
  const Waits waits = polls ? Waits::kPolling : Waits::kBlocking;
  if (argc == 4 && std::strcmp(argv[2], "answer") == 0) {
    return udp ? answer_udp(limits::number(argv[3])) : answer_tcp(limits::number(argv[3]), waits);
  }
  if (argc == 7 && std::strcmp(argv[2], "ask") == 0) {
    const std::size_t port = limits::number(argv[4]);
    const std::size_t size = limits::number(argv[5]), count = limits::number(argv[6]);
    return udp ? ask_udp(argv[3], port, size, count) : ask_tcp(argv[3], port, size, count, waits);
  }
  std::fprintf(stderr,
               "usage: pingpong udp|tcp|tcp-polling answer PORT | ask ADDRESS PORT SIZE COUNT\n");
  return 2;
}
