// How soon a thread that sleeps in read(2) on a TCP socket is awake after 8 bytes were written:
// what the kernel and the machine's idle cores take, for the figures of
// bench/verbs/event_latency.cc. All sleep between messages.
//
// usage: wakes answer PORT
//        wakes ask ADDRESS PORT one-way|there-and-back COUNT
// Both ends read CLOCK_MONOTONIC of one machine; the time of writing travels as the message.
// Prints a line "p50 p99" in us, then a histogram with buckets of powers of two.
#include <netinet/tcp.h>

#include <cstring>

#include "bench/limits/process.h"
#include "bench/pauses.h"
#include "bench/tcp.h"

namespace {

struct Plan {
  std::uint32_t there_and_back = 0, count = 0;
};

void send_at_once(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int answer(std::size_t port) {
  const int socket = tcp::accept_one(port);
  send_at_once(socket);
  Plan plan;
  tcp::receive(socket, &plan, sizeof plan);
  std::vector<double> seconds(plan.count);
  for (double& passed : seconds) {
    double written = 0;
    tcp::receive(socket, &written, sizeof written);
    passed = limits::now_s() - written;
    if (plan.there_and_back != 0) tcp::send(socket, &written, sizeof written);
  }
  tcp::send(socket, seconds.data(), seconds.size() * sizeof seconds[0]);
  return 0;
}

std::vector<double> ask(int socket, const Plan& plan) {
  send_at_once(socket);
  tcp::send(socket, &plan, sizeof plan);
  std::vector<double> there_and_back(plan.count), one_way(plan.count);
  for (double& passed : there_and_back) {
    pauses::sleep_between();
    double written = limits::now_s();
    tcp::send(socket, &written, sizeof written);
    if (plan.there_and_back == 0) continue;
    tcp::receive(socket, &written, sizeof written);
    passed = limits::now_s() - written;
  }
  tcp::receive(socket, one_way.data(), one_way.size() * sizeof one_way[0]);
  return plan.there_and_back != 0 ? there_and_back : one_way;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "answer") == 0) return answer(limits::number(argv[2]));
  const bool asks = argc == 6 && std::strcmp(argv[1], "ask") == 0 && limits::number(argv[5]) != 0;
  const bool returns = asks && std::strcmp(argv[4], "there-and-back") == 0;
  if (!asks || (!returns && std::strcmp(argv[4], "one-way") != 0)) {
    std::fprintf(stderr,
                 "usage: wakes answer PORT | ask ADDRESS PORT one-way|there-and-back COUNT\n");
    return 2;
  }
  const int socket = tcp::connect_to(argv[2], limits::number(argv[3]));
  pauses::print(ask(socket, {.there_and_back = returns ? 1U : 0U,
                             .count = static_cast<std::uint32_t>(limits::number(argv[5]))}));
  return 0;
}
