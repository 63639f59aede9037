// XRCTarget: an XRC target QP, which the contexts of a process may share: each has a QPObject of
// its own (ibv_open_qp), and all hear of its events. It goes with the last of them. Used with the
// adapter locked.
#pragma once

#include <vector>

#include "abi/ibverbs/qp_object.h"

namespace verbena::abi {

struct XRCTarget final : host::EventTarget {
  [[nodiscard]] host::EventDescriptor* on_completion_event() override { return nullptr; }
  void on_async_event(const AsyncEvent& event) override {
    for (QPObject* const handle : handles) handle->on_async_event(event);
  }
  std::vector<QPObject*> handles;
};

// The target that a QP of the device, of type kXRCTarget, was created for.
[[nodiscard]] inline XRCTarget& target_of(const QueuePair* queue) {
  return *static_cast<XRCTarget*>(static_cast<host::EventTarget*>(Device::user_of(queue)));
}

}  // namespace verbena::abi
