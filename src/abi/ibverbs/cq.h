// The common part of ibv_create_cq and ibv_create_cq_ex.
#pragma once

#include "abi/ibverbs/cq_object.h"

namespace verbena::abi {

struct CQRequest {
  u32 cqe = 0;  // at least this many entries
  void* cq_context = nullptr;
  ibv_comp_channel* channel = nullptr;  // nullptr if there are no completion events
  u32 comp_vector = 0;
  OnOverrun on_overrun = OnOverrun::kFail;
};

// nullptr and errno on failure.
[[nodiscard]] CQObject* create_cq(ContextObject& owner, const CQRequest& request);

}  // namespace verbena::abi
