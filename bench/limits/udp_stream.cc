// How fast UDP goes when the kernel cuts and joins datagrams (UDP_SEGMENT, UDP_GRO): the limit of a
// RoCEv2 link on UDP sockets. The sender repeats bursts of equal datagrams; the receiver takes them
// into one buffer and counts. Sockets are unconnected, as ours are.
//
// usage: udp_stream receive PORT [REST_US]       until a datagram of one byte says that it is over;
//                                                prints: GB_PER_S (received, first to last). Rests
//                                                so long whenever it has found nothing
//        udp_stream send ADDRESS PORT DATAGRAM SECONDS
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "bench/limits/process.h"

namespace {

constexpr std::size_t kLargestBurst = 65000;
constexpr double kSilence_s = 20;

int udp_socket() {
  const int s = socket(AF_INET, SOCK_DGRAM, 0);
  limits::require(s >= 0, "socket");
  const int size = 8 << 20, discover = IP_PMTUDISC_DO;
  setsockopt(s, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  setsockopt(s, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  setsockopt(s, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover);
  return s;
}

void rest(double seconds) {
  for (const double end = limits::now_s() + seconds; limits::now_s() < end;) continue;
}

int receive(std::size_t port, double rest_s) {
  const int s = udp_socket(), on = 1;
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(static_cast<std::uint16_t>(port));
  limits::require(bind(s, reinterpret_cast<sockaddr*>(&here), sizeof here) == 0, "bind");
  limits::require(setsockopt(s, SOL_UDP, UDP_GRO, &on, sizeof on) == 0, "UDP_GRO");
  std::vector<std::uint8_t> buffer(1 << 16);
  std::uint64_t bytes = 0;
  double first = 0, last = limits::now_s();
  for (;;) {
    const ssize_t n = recv(s, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n == 1) break;
    if (n < 0) {
      if (limits::now_s() - last > kSilence_s) limits::fail("nothing came");
      rest(rest_s);
      continue;
    }
    last = limits::now_s();
    if (first == 0) first = last;
    bytes += static_cast<std::uint64_t>(n);
  }
  std::printf("%.4f\n", static_cast<double>(bytes) / (last - first) * 1e-9);
  return 0;
}

int send_to(const char* address, std::size_t port, std::size_t datagram, double seconds) {
  const int s = udp_socket();
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(static_cast<std::uint16_t>(port));
  limits::require(inet_pton(AF_INET, address, &there.sin_addr) == 1, "address");
  const int segment = static_cast<int>(datagram);
  limits::require(setsockopt(s, SOL_UDP, UDP_SEGMENT, &segment, sizeof segment) == 0,
                  "UDP_SEGMENT");
  const std::size_t burst = std::min<std::size_t>(kLargestBurst / datagram, 64) * datagram;
  std::vector<std::uint8_t> data(burst, 1);
  const double end = limits::now_s() + seconds;
  const auto* to = reinterpret_cast<const sockaddr*>(&there);
  while (limits::now_s() < end) {
    for (int i = 0; i < 16; ++i) sendto(s, data.data(), burst, 0, to, sizeof there);
  }
  for (int i = 0; i < 20; ++i) {  // some of them will get through
    usleep(20'000);
    sendto(s, data.data(), 1, 0, to, sizeof there);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if ((argc == 3 || argc == 4) && std::strcmp(argv[1], "receive") == 0) {
    const std::size_t rest_us = argc == 4 ? limits::number(argv[3]) : 0;
    return receive(limits::number(argv[2]), static_cast<double>(rest_us) * 1e-6);
  }
  if (argc == 6 && std::strcmp(argv[1], "send") == 0) {
    return send_to(argv[2], limits::number(argv[3]), limits::number(argv[4]),
                   static_cast<double>(limits::number(argv[5])));
  }
  std::fprintf(stderr,
               "usage: udp_stream receive PORT [REST_US] | send ADDRESS PORT DATAGRAM SECONDS\n");
  return 2;
}
