#include "host/links/tcp/tcp_streams.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"

namespace verbena::host {
namespace {

// Returns true if the connection is over in both directions. Of an end that has not finished itself
// that is a reset, which a Unix socket reports as an end.
bool hangs_up(int socket) {
  pollfd asked{.fd = socket, .events = 0, .revents = 0};
  return ::poll(&asked, 1, 0) > 0 && (asked.revents & POLLHUP) != 0;
}

}  // namespace

struct TCPStreams::Stream final : ReadyTarget {
  Stream(TCPStreams& all, StreamSocket socket_of_it, QPN qp, u64 number_of_it)
      : owner(all), socket(std::move(socket_of_it)), qpn(qp), number(number_of_it) {}
  ~Stream() override {
    if (socket.is_open()) owner.poll_.forget(socket.get(), *this);
  }
  void on_ready(u32 events, Time now) override { owner.on_ready(*this, events, now); }

  TCPStreams& owner;
  StreamSocket socket;
  QPN qpn;
  u64 number;
  std::unique_ptr<StreamCapture> capture;
  std::unique_ptr<FaultyStream> faults;  // nullptr: none
  // More is received; not while the rules hold back much.
  [[nodiscard]] bool reads() const {
    return socket.is_open() && !peer_finished && !awaits_copies &&
           (faults == nullptr || !faults->in_is_full());
  }

  // When the rules hold something back no longer. Bytes that the QP does not take yet need no
  // timer.
  [[nodiscard]] Time next_due() const {
    return awaits_copies ? faults->out.next_due() : faults->next_due();
  }

  bool awaits_room = false;    // the socket takes no more; its QP is paused
  bool awaits_copies = false;  // the QP takes no more bytes: Streams::takes_bytes()
  bool has_finished = false;   // we send no more
  bool peer_finished = false;
  Time deadline = Time::never();  // of has_finished
};

TCPStreams::TCPStreams(Device& device, TCPPoll& poll)
    : device_(device), poll_(poll), staging_(new u8[kStagingBytes]) {}

TCPStreams::~TCPStreams() = default;

void TCPStreams::abandon() { streams_.clear(); }

void TCPStreams::adopt(StreamSocket socket, AgreedStream agreed, Time now) {
  const QPN qpn = agreed.qpn;
  auto made = std::make_unique<Stream>(*this, std::move(socket), qpn, agreed.number);
  made->capture = std::move(agreed.capture);
  made->faults = faults_.begin(qpn, agreed.peer, agreed.agreement);
  Stream& stream = *made;
  if (auto& place = streams_[qpn.value]; place != nullptr) close(*place);
  streams_[qpn.value] = std::move(made);
  if (!poll_.watch(stream.socket.get(), EPOLLIN, stream)) return lose(stream, now);
  take_in(stream, agreed.first, now);
  if (stream.socket.has_pending()) (void)receive(stream, now);
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
  if ((events & EPOLLOUT) != 0 && stream.socket.flush() &&
      std::exchange(stream.awaits_room, false)) {
    watch(stream);
    if (stream.faults != nullptr)
      (void)pass_out(stream, now);
    else if (QueuePair* const qp = qp_of(stream))
      device_.resume(qp);
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) (void)receive(stream, now);
}

bool TCPStreams::receive_likely(Time now) { return likely_ != nullptr && receive(*likely_, now); }

// Reads unwanted bytes, too: otherwise the kernel would answer them with a reset, which overtakes
// our last bytes.
bool TCPStreams::receive(Stream& stream, Time now) {
  bool any = false;
  for (u32 received = 0;
       (received < kMaxAtOnce || stream.socket.has_pending()) && stream.reads();) {
    QueuePair* const qp = qp_of(stream);
    MutableBytes place = place_of(stream, qp);
    iovec to[2] = {{place.data(), place.size()}, {staging_.get(), kStagingBytes}};
    const i64 got = stream.socket.receive(std::span(to).subspan(place.empty() ? 1 : 0));
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    any = true;
    if (got < 0 || (got == 0 && !stream.has_finished && hangs_up(stream.socket.get()))) {
      lose(stream, now);
      break;
    }
    if (got == 0) {
      stream.peer_finished = true;
      watch(stream);
      if (stream.faults != nullptr && stream.faults->in.next_due() != Time::never())
        stream.faults->in_ends = true;
      else
        on_peer_finished(stream, now);
      break;
    }
    likely_ = &stream;
    ++counters_.received_datagrams;
    const auto bytes = static_cast<std::size_t>(got);
    received += static_cast<u32>(bytes);
    if (stream.capture != nullptr) {
      stream.capture->on_received(place.first(std::min(bytes, place.size())));
      if (bytes > place.size()) stream.capture->on_received({staging_.get(), bytes - place.size()});
    }
    if (qp == nullptr) continue;
    const std::size_t direct = std::min(bytes, place.size());
    if (direct != 0) device_.streams().on_placed(*qp, static_cast<u32>(direct), now);
    if (bytes != direct) take_in(stream, {staging_.get(), bytes - direct}, now);
    if (bytes < place.size() + kStagingBytes) break;
  }
  return any;
}

// Where payload may be received at once; none: it goes through staging.
MutableBytes TCPStreams::place_of(const Stream& stream, QueuePair* qp) const {
  if (qp == nullptr || stream.faults != nullptr || stream.socket.is_encrypted()) return {};
  const MutableBytes place = device_.streams().place(*qp);
  return place.size() < kDirectBytes ? MutableBytes{} : place;
}

void TCPStreams::take_in(Stream& stream, Bytes bytes, Time now) {
  if (bytes.empty()) return;
  if (stream.faults != nullptr) {
    stream.faults->in.push(bytes, faults_.filter(), now);
    (void)pass_in(stream, now);
    watch(stream);
  } else if (QueuePair* const qp = qp_of(stream)) {
    device_.streams().on_bytes(*qp, bytes, now);
    note_copies(stream, *qp);
  }
}

void TCPStreams::note_copies(Stream& stream, const QueuePair& qp) {
  if (device_.streams().takes_bytes(qp)) return;
  stream.awaits_copies = any_awaits_copies_ = true;
  watch(stream);
}

void TCPStreams::resume_reads(Time now) {
  if (!std::exchange(any_awaits_copies_, false)) return;
  for (const auto& [qpn, stream] : streams_) {
    if (!stream->awaits_copies) continue;
    const QueuePair* const qp = qp_of(*stream);
    stream->awaits_copies = qp != nullptr && !device_.streams().takes_bytes(*qp);
    any_awaits_copies_ |= stream->awaits_copies;
    if (stream->awaits_copies || !stream->socket.is_open()) continue;
    if (stream->faults != nullptr) (void)pass_in(*stream, now);
    watch(*stream);
  }
}

// Gives the QP what its rules no longer hold back.
bool TCPStreams::pass_in(Stream& stream, Time now) {
  FaultyStream& faults = *stream.faults;
  bool any = false;
  while (!stream.awaits_copies) {
    const Bytes due = faults.in.front(faults_.filter(), now);
    if (due.empty()) break;
    any = true;
    QueuePair* const qp = qp_of(stream);
    if (qp != nullptr) device_.streams().on_bytes(*qp, due, now);
    faults.in.pop(due.size());
    if (qp != nullptr) note_copies(stream, *qp);
  }
  faults_.note_objects(faults);
  if (faults.in.next_due() == Time::never() && std::exchange(faults.in_ends, false))
    on_peer_finished(stream, now);
  next_timer_ = std::min(next_timer_, stream.next_due());
  return any;
}

void TCPStreams::on_peer_finished(Stream& stream, Time now) {
  QueuePair* const qp = qp_of(stream);
  if (qp != nullptr) device_.streams().on_end(*qp, StreamEnd::kFinished, now);
  if (stream.has_finished || qp == nullptr) close(stream);
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
  if (stream.has_finished) return false;
  if (stream.faults != nullptr) return send_late(stream, qp, now);
  if (stream.awaits_room) return false;
  gather_.clear();
  device_.streams().gather(qp, gather_, now);
  if (gather_.empty()) {
    if (device_.streams().wants_end(qp)) finish_sending(stream, now);
    return false;
  }
  const i64 taken = send_pieces(stream, gather_.pieces());
  on_taken(stream, qp, static_cast<u32>(std::max<i64>(taken, 0)), now);
  if (taken < 0) lose(stream, now);
  return taken > 0;
}

// The same through the queue of the connection's rules, which takes all. Until it has room the QP
// is paused.
bool TCPStreams::send_late(Stream& stream, QueuePair& qp, Time now) {
  FaultyStream& faults = *stream.faults;
  gather_.clear();
  device_.streams().gather(qp, gather_, now);
  const bool any = !gather_.empty();
  for (const Bytes piece : gather_.pieces()) faults.out.push(piece, faults_.filter(), now);
  if (any)
    device_.streams().on_sent(qp, gather_, gather_.bytes(), now);
  else
    faults.out_ends = device_.streams().wants_end(qp);
  if (faults.is_full()) {
    faults.is_paused = true;
    device_.pause(&qp);
  }
  return pass_out(stream, now) || any;
}

// Sends the bytes that the rules no longer hold back.
bool TCPStreams::pass_out(Stream& stream, Time now) {
  FaultyStream& faults = *stream.faults;
  bool any = false;
  while (!stream.awaits_room && stream.socket.is_open()) {
    const Bytes due = faults.out.front(faults_.filter(), now);
    if (due.empty()) break;
    const i64 taken = send_pieces(stream, {&due, 1});
    if (taken < 0) {
      lose(stream, now);
      return any;
    }
    if (stream.capture != nullptr)
      stream.capture->on_sent(due.first(static_cast<std::size_t>(taken)));
    stream.awaits_room = static_cast<std::size_t>(taken) < due.size() || stream.socket.has_unsent();
    faults.out.pop(static_cast<std::size_t>(taken));
    any |= taken > 0;
    if (stream.awaits_room) watch(stream);
  }
  faults_.note_objects(faults);
  if (!faults.is_full() && std::exchange(faults.is_paused, false))
    if (QueuePair* const qp = qp_of(stream)) device_.resume(qp);
  if (faults.out.bytes() == 0 && std::exchange(faults.out_ends, false)) finish_sending(stream, now);
  next_timer_ = std::min(next_timer_, stream.next_due());
  return any;
}

// Returns the number of bytes that the socket has taken; negative if the connection is lost.
i64 TCPStreams::send_pieces(Stream& stream, std::span<const Bytes> from) {
  std::array<iovec, StreamGather::kMaxPieces> pieces;
  std::size_t count = 0;
  for (const Bytes piece : from) pieces[count++] = {const_cast<u8*>(piece.data()), piece.size()};
  const i64 taken = stream.socket.send(std::span(pieces).first(count));
  ++counters_.sent_bursts;
  if (taken >= 0) return taken;
  return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 0 : -1;
}

void TCPStreams::on_taken(Stream& stream, QueuePair& qp, u32 bytes, Time now) {
  const bool is_full = bytes < gather_.bytes() || stream.socket.has_unsent();
  if (stream.capture != nullptr) capture_sent(stream, bytes);
  device_.streams().on_sent(qp, gather_, bytes, now);
  if (!is_full) return;
  stream.awaits_room = true;
  device_.pause(&qp);
  watch(stream);
}

// As one segment, as TCP would send it.
void TCPStreams::capture_sent(Stream& stream, u32 bytes) {
  std::vector<u8> sent;
  sent.reserve(bytes);
  gather_.visit_range(0, bytes,
                      [&sent](Bytes part) { sent.insert(sent.end(), part.begin(), part.end()); });
  stream.capture->on_sent(sent);
}

void TCPStreams::watch(Stream& stream) {
  const u32 in = stream.reads() ? u32{EPOLLIN} : 0, out = stream.awaits_room ? u32{EPOLLOUT} : 0;
  poll_.change(stream.socket.get(), in | out, stream);
}

// --- ends

// Nothing is left to be sent: the peer learns of it, and ends its side.
void TCPStreams::finish_sending(Stream& stream, Time now) {
  stream.has_finished = true;
  stream.socket.finish();
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

// The entry stays until another stream takes it: the caller may still hold a reference.
void TCPStreams::close(Stream& stream) {
  if (!stream.socket.is_open()) return;
  if (likely_ == &stream) likely_ = nullptr;
  poll_.forget(stream.socket.get(), stream);
  stream.capture.reset();
  if (!stream.has_finished) stream.socket.tell_end();
  stream.socket.reset();
  stream.has_finished = true;
  stream.deadline = Time::never();
  ended_.push_back(stream.number);
}

// The kernel still sends the data that orphans wrote before.
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
    if (stream->deadline <= now) {
      close(*stream);
      continue;
    }
    next_timer_ = std::min(next_timer_, stream->deadline);
    if (stream->faults == nullptr || !stream->socket.is_open()) continue;
    if (pass_in(*stream, now)) watch(*stream);
    (void)pass_out(*stream, now);
  }
  return true;
}

}  // namespace verbena::host
