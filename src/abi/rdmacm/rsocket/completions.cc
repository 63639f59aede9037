#include "abi/rdmacm/rsocket/completions.h"

#include <fcntl.h>

namespace verbena::rdmacm::rsocket {

Completions::~Completions() {
  if (channel_ == nullptr) return;
  drain();
  if (cq_ != nullptr) ibv_destroy_cq(cq_);
  ibv_destroy_comp_channel(channel_);
}

int Completions::open(ibv_context* verbs, u32 entries) {
  channel_ = ibv_create_comp_channel(verbs);
  if (channel_ == nullptr) return -1;
  if (fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK) != 0) return -1;
  cq_ = ibv_create_cq(verbs, static_cast<int>(entries), nullptr, channel_, 0);
  return cq_ != nullptr ? 0 : -1;
}

bool Completions::drain() {
  bool any = false;
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_, &cq, &context) == 0) {
    ibv_ack_cq_events(cq, 1);
    any = true;
  }
  return any;
}

}  // namespace verbena::rdmacm::rsocket
