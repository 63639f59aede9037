#include "host/stream_side.h"

namespace verbena::host {

StreamSide::StreamSide(Adapter& adapter, Device& device, TCPLink& link, const MPAConfig& config,
                       std::unique_ptr<StreamOpener> opener, LocalPath* local,
                       std::unique_ptr<StreamEncryption> encryption)
    : device_(device),
      link_(link),
      opener_(std::move(opener)),
      encryption_(std::move(encryption)),
      withdrawals_(link.channel(), local),
      streams_(device, link.poll()),
      manager_(adapter, device, link.poll(), streams_, config, *opener_, local, encryption_.get()) {
  if (local == nullptr || !link.poll().watch(link.channel().fd(), EPOLLIN, withdrawals_)) return;
  local->sleep_until_withdrawn();
}

StreamSide::~StreamSide() {
  if (withdrawals_.local != nullptr) link_.poll().forget(link_.channel().fd(), withdrawals_);
}

void StreamSide::Withdrawals::on_ready(u32, Time) {
  while (channel.receive() != ProcessChannel::Received::kNothing) {
  }
  local->on_woken();
}

// While a program polls, the socket that had something last is asked directly, a call less, if it
// is the only one that is active.
bool StreamSide::receive(Look look, Time now) {
  const bool asks_one = look == Look::kLikely && alone_ >= kAlone && streams_.has_likely() &&
                        ++looks_ % kLooksBetween != 0;
  return asks_one ? streams_.receive_likely(now) : receive_everywhere(now);
}

bool StreamSide::receive_everywhere(Time now) {
  const void* const likely = streams_.likely();
  const u32 ready = link_.poll().serve(now);
  if (ready != 0)
    alone_ = ready == 1 && streams_.likely() == likely ? std::min(alone_ + 1, kAlone) : 0;
  return ready != 0;
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

// Closes the epoll first: the parent shares it, and must still get events of the sockets.
void StreamSide::abandon() {
  link_.poll().close();
  opener_->abandon();
  manager_.abandon_all();
  streams_.abandon();
}

}  // namespace verbena::host
