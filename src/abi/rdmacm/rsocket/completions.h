// Completions: a CQ and its channel, whose descriptor never blocks.
#pragma once

#include <infiniband/verbs.h>

#include "base/types.h"

namespace verbena::rdmacm::rsocket {

class Completions {
 public:
  Completions() = default;
  ~Completions();  // after the QPs
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  [[nodiscard]] int open(ibv_context* verbs, u32 entries);  // 0, or -1 and errno
  [[nodiscard]] ibv_cq* cq() const { return cq_; }

  [[nodiscard]] int fd() const { return channel_->fd; }
  [[nodiscard]] int arm() { return ibv_req_notify_cq(cq_, 0); }  // the next makes fd() readable
  bool drain();                                                  // no longer is it; true: it was

 private:
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
};

}  // namespace verbena::rdmacm::rsocket
