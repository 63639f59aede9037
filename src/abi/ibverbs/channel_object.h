// ChannelObject: a completion channel: a pollable descriptor and the CQs that have an event to
// read.
#pragma once

#include <atomic>

#include "abi/ibverbs/context_object.h"

namespace verbena::abi {

struct ChannelObject : ibv_comp_channel {
  static ChannelObject& of(ibv_comp_channel* channel) {
    return *static_cast<ChannelObject*>(channel);
  }
  [[nodiscard]] ContextObject& owner() const { return ContextObject::of(context); }

  std::unique_ptr<host::EventQueue<CQObject*>> ready;
  std::atomic<int> users{0};  // CQs that have this channel
};

// Deleted; kBusy and unchanged while a CQ has it.
[[nodiscard]] Status destroy(ChannelObject& channel);

}  // namespace verbena::abi
