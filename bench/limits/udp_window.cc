// The rate of UDP sockets where the kernel neither segments nor merges datagrams (no checksum
// offload, as in the lab's guests). It is the limit of a RoCEv2 link there, without a CRC and
// without a transport.
//
// usage: udp_window stream PORT SIZE COUNT [ADDRESS]   so many datagrams, 64 at most unanswered; an
//                                                      answer to each 16. Prints GB_PER_S
//        udp_window exchange PORT COUNT [ADDRESS]      a request and an acknowledgement each way, a
//                                                      datagram each. Prints the median half in us
// Without ADDRESS it is the other side. UDP without checksums. `stream` sleeps until a datagram
// arrives, which leaves the cores to the threads that emulate the guests' cards; `exchange` spins.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "bench/limits/process.h"
#include "bench/tcp.h"

namespace {

constexpr std::size_t kBatch = 16, kWindow = 64, kLargest = 65536;
constexpr std::size_t kRequest = 40, kAcknowledgement = 20;
constexpr double kSilence_s = 20;

class Peer {
 public:
  // If `address` is null, the other side is the first host that sends.
  Peer(std::size_t port, const char* address) : is_first_(address != nullptr) {
    const int buffer = 8 << 20, on = 1;
    if (setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) != 0)
      setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    setsockopt(socket_, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    setsockopt(socket_, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on);
    there_ = tcp::at(is_first_ ? address : "0.0.0.0", port);
    if (!is_first_)
      limits::require(bind(socket_, reinterpret_cast<sockaddr*>(&there_), sizeof there_) == 0,
                      "bind");
    for (std::size_t i = 0; i < kBatch; ++i) pieces_[i] = {rooms_[i].data(), kLargest};
  }
  [[nodiscard]] bool is_first() const { return is_first_; }

  void send(std::size_t count, std::size_t size) {
    for (std::size_t i = 0; i < count; ++i) set(i, size, true);
    for (std::size_t sent = 0; sent < count;) {
      const int n = sendmmsg(socket_, messages_.data() + sent, static_cast<unsigned>(count - sent),
                             MSG_DONTWAIT);
      sent += static_cast<std::size_t>(std::max(n, 0));
    }
  }
  void sleep() const {
    pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
    poll(&waiting, 1, 1);
  }
  // Those that are there.
  std::size_t receive() {
    for (std::size_t i = 0; i < kBatch; ++i) set(i, kLargest, !is_first_);
    const int n = recvmmsg(socket_, messages_.data(), kBatch, MSG_DONTWAIT, nullptr);
    if (n <= 0 && limits::now_s() - last_s_ > kSilence_s) limits::fail("nothing comes");
    if (n > 0) last_s_ = limits::now_s();
    return static_cast<std::size_t>(std::max(n, 0));
  }
  void await(std::size_t count) {
    while (count > 0) count -= std::min(count, receive());
  }

 private:
  void set(std::size_t i, std::size_t size, bool names) {
    pieces_[i].iov_len = size;
    msghdr& header = messages_[i].msg_hdr;
    header = {};
    header.msg_name = names ? &there_ : nullptr;
    header.msg_namelen = names ? sizeof there_ : 0;
    header.msg_iov = &pieces_[i];
    header.msg_iovlen = 1;
  }

  const bool is_first_;
  const int socket_ = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in there_{};
  std::vector<std::array<char, kLargest>> rooms_{kBatch};
  std::array<iovec, kBatch> pieces_{};
  std::array<mmsghdr, kBatch> messages_{};
  double last_s_ = limits::now_s();
};

void stream(Peer& peer, std::size_t size, std::size_t count) {
  if (!peer.is_first()) {
    for (std::size_t got = 0, answered = 0; got < count;) {
      const std::size_t came = peer.receive();
      if (came == 0) peer.sleep();
      got += came;
      for (; answered + kBatch <= got; answered += kBatch) peer.send(1, kAcknowledgement);
    }
    return;
  }
  const double begin = limits::now_s();
  for (std::size_t sent = 0, answered = 0; answered < count;) {
    if (sent < count && sent - answered <= kWindow - kBatch) {
      peer.send(kBatch, size);
      sent += kBatch;
    } else {
      peer.sleep();
    }
    answered += peer.receive() * kBatch;
  }
  const double seconds = limits::now_s() - begin;
  std::printf("%.4f\n", static_cast<double>(count * size) / seconds * 1e-9);
}

void exchange(Peer& peer, std::size_t count) {
  std::vector<double> halves_us;
  for (std::size_t i = 0; i < count; ++i) {
    const double begin = limits::now_s();
    if (!peer.is_first()) peer.await(2);
    peer.send(1, kRequest);
    peer.send(1, kAcknowledgement);
    if (peer.is_first()) peer.await(2);
    halves_us.push_back((limits::now_s() - begin) / 2 * 1e6);
  }
  if (!peer.is_first()) return;
  const auto middle = halves_us.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(halves_us.begin(), middle, halves_us.end());
  std::printf("%.2f\n", *middle);
}

}  // namespace

int main(int argc, char** argv) {
  const bool streams = argc >= 5 && std::strcmp(argv[1], "stream") == 0;
  const int first_optional = streams ? 5 : 4;
  if (argc < 4 || argc > first_optional + 1 ||
      (!streams && std::strcmp(argv[1], "exchange") != 0)) {
    std::fprintf(stderr,
                 "usage: udp_window stream PORT SIZE COUNT [ADDRESS] | exchange PORT COUNT "
                 "[ADDRESS]\n");
    return 2;
  }
  Peer peer(limits::number(argv[2]), argc > first_optional ? argv[first_optional] : nullptr);
  // As many as are answered for.
  const std::size_t count =
      (limits::number(argv[first_optional - 1]) + kBatch - 1) / kBatch * kBatch;
  if (streams)
    stream(peer, std::min(limits::number(argv[3]), kLargest - 36), count);
  else
    exchange(peer, count);
  return 0;
}
