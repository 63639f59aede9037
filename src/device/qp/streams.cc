#include "device/qp/streams.h"

#include <algorithm>
#include <utility>

namespace verbena {

Result<u64> Streams::open(QueuePair& qp, const StreamOpening& opening, Time now) {
  QPAttributes& attributes = qp.attributes;
  if (qp.stream == nullptr || attributes.state != QPState::kInit)
    return failure(Status::kInvalidArgument);
  attributes.path.source = opening.local;
  attributes.path.destination = opening.remote;
  attributes.tcp = opening.tcp;
  attributes.max_dest_rd_atomic = static_cast<u8>(opening.agreement.ird);
  attributes.max_rd_atomic = static_cast<u8>(opening.agreement.ord);
  qp.stream->begin(opening.agreement, now);
  qp.stream_number = ++opened_;
  runner_.enter(qp, QPState::kRTS, now);
  return opened_;
}

void Streams::abandon(QueuePair& qp, Time now) {
  if (qp.attributes.state != QPState::kError) runner_.enter(qp, QPState::kError, now);
}

QueuePair* Streams::find(QPN qpn, u64 number) const {
  QueuePair* const qp = qps_.find(qpn);
  return qp != nullptr && qp->stream_number == number ? qp : nullptr;
}

void Streams::forget(QueuePair& qp) {
  if (qp.stream_number != 0) ++orphans_;
  qp.stream_number = 0;
  std::erase_if(waiting_, [&qp](const Waiting& waiting) { return waiting.qp == &qp; });
}

void Streams::on_bytes(QueuePair& qp, Bytes bytes, Time now) {
  if (takes_bytes(qp)) bytes = pass_on(qp, bytes, now);
  if (!bytes.empty()) keep(qp, bytes, now);
}

// Returns the bytes that the engine does not take before copies have ended.
Bytes Streams::pass_on(QueuePair& qp, Bytes bytes, Time now) {
  const u64 before = qp.stream->counts().received_segments;
  const std::size_t all = bytes.size();
  while (!bytes.empty() && qp.stream->takes_bytes()) {
    bytes = qp.stream->on_bytes(bytes, now);
    runner_.on_stream_input(qp, now);
  }
  count_received(qp, all - bytes.size(), before);
  return bytes;
}

void Streams::keep(QueuePair& qp, Bytes bytes, Time now) {
  std::vector<u8>& kept = qp.copies.bytes;
  kept.insert(kept.end(), bytes.begin(), bytes.end());
  if (find_waiting(qp) == nullptr) waiting_.push_back({&qp, std::nullopt});
  runner_.on_stream_input(qp, now);  // sets the timer
}

Streams::Waiting* Streams::find_waiting(const QueuePair& qp) {
  const auto found = std::ranges::find(waiting_, &qp, &Waiting::qp);
  return found == waiting_.end() ? nullptr : &*found;
}

// An engine's outputs may end its QP's stream, but not forget another's.
void Streams::on_timer(Time now) {
  for (std::size_t i = 0; i < waiting_.size();) {
    QueuePair& qp = *waiting_[i].qp;
    const std::vector<u8> bytes = std::exchange(qp.copies.bytes, {});
    const Bytes rest = pass_on(qp, bytes, now);
    qp.copies.bytes.assign(rest.begin(), rest.end());
    if (!rest.empty()) {
      runner_.on_stream_input(qp, now);
      ++i;
      continue;
    }
    const std::optional<StreamEnd> end = waiting_[i].end;
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    if (end) on_end(qp, *end, now);
  }
}

void Streams::on_placed(QueuePair& qp, u32 bytes, Time now) {
  qp.stream->on_placed(bytes, now);
  count_received(qp, bytes, qp.stream->counts().received_segments);
}

void Streams::count_received(QueuePair& qp, u64 bytes, u64 segments_before) {
  const u64 segments = qp.stream->counts().received_segments - segments_before;
  qp.traffic.received_bytes += bytes;
  qp.traffic.received_packets += segments;
  counters_.port_rcv_bytes += bytes;
  counters_.port_rcv_packets += segments;
}

void Streams::on_end(QueuePair& qp, StreamEnd how, Time now) {
  if (Waiting* const waiting = find_waiting(qp)) {
    waiting->end = how;
    return;
  }
  qp.stream->on_end(how, now);
  runner_.on_stream_input(qp, now);
}

// An empty gather means that the data cannot be sent, and is in error.
void Streams::gather(QueuePair& qp, StreamGather& out, Time now) {
  qp.stream->gather(out, now);
  if (out.empty()) runner_.on_stream_output(qp, MayContinue::kNo, now);
}

void Streams::on_sent(QueuePair& qp, const StreamGather& gathered, u32 bytes, Time now) {
  const u64 before = qp.stream->counts().sent_segments;
  qp.stream->on_sent(gathered, bytes, now);
  const u64 segments = qp.stream->counts().sent_segments - before;
  qp.traffic.sent_bytes += bytes;
  qp.traffic.sent_packets += segments;
  counters_.port_xmit_bytes += bytes;
  counters_.port_xmit_packets += segments;
  const bool continues = bytes == gathered.bytes() && qp.stream->outputs().packet;
  runner_.on_stream_output(qp, continues ? MayContinue::kYes : MayContinue::kNo, now);
}

}  // namespace verbena
