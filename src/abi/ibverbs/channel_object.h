// ChannelObject: a completion channel: a pollable descriptor and the CQs that have an event to
// read.
#pragma once

#include <atomic>

#include "abi/ibverbs/context_object.h"

namespace verbena::abi {

struct ChannelObject : ibv_comp_channel {
  ChannelObject() : ibv_comp_channel{} {}

  static ChannelObject& of(ibv_comp_channel* channel) {
    return *static_cast<ChannelObject*>(channel);
  }
  [[nodiscard]] ContextObject& owner() const { return ContextObject::of(context); }

  // `refcnt` counts the CQs that have this channel.
  void add_user() { ++std::atomic_ref(refcnt); }
  void drop_user() { --std::atomic_ref(refcnt); }
  [[nodiscard]] bool in_use() { return std::atomic_ref(refcnt) != 0; }

  std::unique_ptr<host::EventQueue<CQObject*>> ready;
};

// Deleted; kBusy and unchanged while a CQ has it.
[[nodiscard]] Status destroy(ChannelObject& channel);

}  // namespace verbena::abi
