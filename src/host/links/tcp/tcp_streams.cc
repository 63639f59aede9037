#include "host/links/tcp/tcp_streams.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"

namespace verbena::host {

struct TCPStreams::Stream final : ReadyTarget {
  Stream(TCPStreams& all, Descriptor socket_of_it, QPN qp, u64 number_of_it)
      : owner(all), socket(std::move(socket_of_it)), qpn(qp), number(number_of_it) {}
  ~Stream() override {
    if (socket.is_open()) owner.poll_.forget(socket.get(), *this);
  }
  void on_ready(u32 events, Time now) override { owner.on_ready(*this, events, now); }

  TCPStreams& owner;
  Descriptor socket;
  QPN qpn;
  u64 number;
  std::unique_ptr<StreamCapture> capture;
  bool awaits_room = false;   // the socket takes no more; its QP is paused
  bool has_finished = false;  // we send no more
  bool peer_finished = false;
  Time deadline = Time::never();  // of has_finished
};

TCPStreams::TCPStreams(Device& device, TCPPoll& poll)
    : device_(device), poll_(poll), staging_(new u8[kStagingOctets]) {}

TCPStreams::~TCPStreams() = default;

void TCPStreams::abandon() { streams_.clear(); }

void TCPStreams::adopt(Descriptor socket, QPN qpn, u64 number, Bytes first,
                       std::unique_ptr<StreamCapture> capture, Time now) {
  auto made = std::make_unique<Stream>(*this, std::move(socket), qpn, number);
  made->capture = std::move(capture);
  Stream& stream = *made;
  if (auto& place = streams_[qpn.value]; place != nullptr) close(*place);
  streams_[qpn.value] = std::move(made);
  if (!poll_.watch(stream.socket.get(), EPOLLIN, stream)) return lose(stream, now);
  if (QueuePair* const qp = qp_of(stream); qp != nullptr && !first.empty())
    device_.streams().on_octets(*qp, first, now);
}

QueuePair* TCPStreams::qp_of(const Stream& stream) const {
  return device_.streams().find(stream.qpn, stream.number);
}

TCPStreams::Stream* TCPStreams::stream_of(QPN qpn) {
  const auto found = streams_.find(qpn.value);
  return found == streams_.end() ? nullptr : found->second.get();
}

// --- in

void TCPStreams::on_ready(Stream& stream, u32 events, Time now) {
  if ((events & EPOLLOUT) != 0 && std::exchange(stream.awaits_room, false)) {
    watch(stream);
    if (QueuePair* const qp = qp_of(stream)) device_.resume(qp);
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) (void)receive(stream, now);
}

bool TCPStreams::receive_likely(Time now) { return likely_ != nullptr && receive(*likely_, now); }

// Octets that nobody wants any more are read all the same: else the kernel would answer them with a
// reset, which overtakes what we have said last.
bool TCPStreams::receive(Stream& stream, Time now) {
  bool any = false;
  for (u32 received = 0; received < kMaxAtOnce && stream.socket.is_open();) {
    QueuePair* const qp = qp_of(stream);
    MutableBytes place = qp != nullptr ? device_.streams().place(*qp) : MutableBytes{};
    if (place.size() < kDirectOctets) place = {};
    iovec to[2] = {{place.data(), place.size()}, {staging_.get(), kStagingOctets}};
    msghdr message{};
    message.msg_iov = place.empty() ? to + 1 : to;
    message.msg_iovlen = place.empty() ? 1 : 2;
    const ssize_t got = ::recvmsg(stream.socket.get(), &message, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    any = true;
    if (got < 0) {
      lose(stream, now);
      break;
    }
    if (got == 0) {
      stream.peer_finished = true;
      if (qp != nullptr) device_.streams().on_end(*qp, StreamEnd::kFinished, now);
      watch(stream);
      if (stream.has_finished || qp == nullptr) close(stream);
      break;
    }
    likely_ = &stream;
    ++counters_.received_datagrams;
    const auto octets = static_cast<std::size_t>(got);
    received += static_cast<u32>(octets);
    if (stream.capture != nullptr) {
      stream.capture->on_received(place.first(std::min(octets, place.size())));
      if (octets > place.size())
        stream.capture->on_received({staging_.get(), octets - place.size()});
    }
    if (qp == nullptr) continue;
    const std::size_t direct = std::min(octets, place.size());
    if (direct != 0) device_.streams().on_placed(*qp, static_cast<u32>(direct), now);
    if (octets != direct) device_.streams().on_octets(*qp, {staging_.get(), octets - direct}, now);
    if (octets < place.size() + kStagingOctets) break;
  }
  return any;
}

// --- out

bool TCPStreams::send(Time now) {
  bool any = false;
  if (device_.streams().orphans() != orphans_) sweep_orphans();
  while (QueuePair* const qp = device_.streams().poll(now)) {
    Stream* const stream = stream_of(device_.attributes_of(qp).qpn);
    if (stream != nullptr && qp_of(*stream) == qp) any |= send(*stream, *qp, now);
  }
  return any;
}

bool TCPStreams::send(Stream& stream, QueuePair& qp, Time now) {
  if (stream.has_finished || stream.awaits_room) return false;
  gather_.clear();
  device_.streams().gather(qp, gather_, now);
  if (gather_.empty()) {
    if (device_.streams().wants_end(qp)) finish_sending(stream, now);
    return false;
  }
  const i64 taken = send_gathered(stream);
  on_taken(stream, qp, static_cast<u32>(std::max<i64>(taken, 0)), now);
  if (taken < 0) lose(stream, now);
  return taken > 0;
}

// How many octets the socket has taken; below 0: the connection is lost.
i64 TCPStreams::send_gathered(Stream& stream) {
  std::array<iovec, StreamGather::kMaxPieces> pieces;
  std::size_t count = 0;
  for (const Bytes piece : gather_.pieces())
    pieces[count++] = {const_cast<u8*>(piece.data()), piece.size()};
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  const ssize_t taken = ::sendmsg(stream.socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  ++counters_.sent_bursts;
  if (taken >= 0) return taken;
  return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 0 : -1;
}

void TCPStreams::on_taken(Stream& stream, QueuePair& qp, u32 octets, Time now) {
  const bool is_full = octets < gather_.octets();
  if (stream.capture != nullptr) capture_sent(stream, octets);
  device_.streams().on_sent(qp, gather_, octets, now);
  if (!is_full) return;
  stream.awaits_room = true;
  device_.pause(&qp);
  watch(stream);
}

// As one segment, as TCP would send it.
void TCPStreams::capture_sent(Stream& stream, u32 octets) {
  std::vector<u8> sent;
  sent.reserve(octets);
  gather_.visit_range(0, octets,
                      [&sent](Bytes part) { sent.insert(sent.end(), part.begin(), part.end()); });
  stream.capture->on_sent(sent);
}

void TCPStreams::watch(Stream& stream) {
  const u32 in = stream.peer_finished ? 0 : u32{EPOLLIN},
            out = stream.awaits_room ? u32{EPOLLOUT} : 0;
  poll_.change(stream.socket.get(), in | out, stream);
}

// --- ends

// Nothing is left to be sent: the peer learns of it, and ends its side.
void TCPStreams::finish_sending(Stream& stream, Time now) {
  stream.has_finished = true;
  (void)::shutdown(stream.socket.get(), SHUT_WR);
  if (stream.peer_finished) return close(stream);
  stream.deadline = now + kLinger;
  next_timer_ = std::min(next_timer_, stream.deadline);
}

void TCPStreams::lose(Stream& stream, Time now) {
  if (QueuePair* const qp = qp_of(stream)) {
    device_.resume(qp);
    device_.streams().on_end(*qp, StreamEnd::kLost, now);
  }
  close(stream);
}

// Its place stays until another has it: whoever calls this may still hold it.
void TCPStreams::close(Stream& stream) {
  if (!stream.socket.is_open()) return;
  if (likely_ == &stream) likely_ = nullptr;
  poll_.forget(stream.socket.get(), stream);
  stream.capture.reset();
  stream.socket.reset();
  stream.has_finished = true;
  stream.deadline = Time::never();
  ended_.push_back(stream.number);
}

// What they have said before goes out; the kernel sees to that.
void TCPStreams::sweep_orphans() {
  orphans_ = device_.streams().orphans();
  for (const auto& [qpn, stream] : streams_)
    if (qp_of(*stream) == nullptr) close(*stream);
}

u64 TCPStreams::poll_ended() {
  if (ended_.empty()) return 0;
  const u64 number = ended_.back();
  ended_.pop_back();
  std::erase_if(streams_, [number](const auto& entry) {
    return entry.second->number == number && !entry.second->socket.is_open();
  });
  return number;
}

bool TCPStreams::run_due_timers(Time now) {
  if (now < next_timer_) return false;
  next_timer_ = Time::never();
  for (const auto& [qpn, stream] : streams_) {
    if (stream->deadline <= now)
      close(*stream);
    else
      next_timer_ = std::min(next_timer_, stream->deadline);
  }
  return true;
}

}  // namespace verbena::host
