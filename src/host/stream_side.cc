#include "host/stream_side.h"

namespace verbena::host {

// While a program polls, the socket that had something last is asked directly: a call less.
bool StreamSide::receive(Look look, Time now) {
  if (look == Look::kLikely && streams_.receive_likely(now)) return true;
  if (look == Look::kLikely && streams_.has_likely() && ++looks_ % kLooksBetween != 0) return false;
  return link_.poll().serve(now);
}

bool StreamSide::send(Time now) {
  if (!device_.has_frames() && !streams_.has_orphans()) return false;
  return streams_.send(now);
}

bool StreamSide::drain() {
  const bool any = manager_.drain();
  if (capture_ != nullptr) capture_->write();
  return any;
}

// The epoll first: it is the parent's too, who shall go on hearing of the sockets.
void StreamSide::abandon() {
  link_.poll().close();
  manager_.abandon_all();
  streams_.abandon();
}

}  // namespace verbena::host
