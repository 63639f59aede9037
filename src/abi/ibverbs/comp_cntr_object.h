// CompCntrObject: a completion counter.
#pragma once

#include "abi/ibverbs/context_object.h"
#include "abi/ibverbs/newer_verbs.h"
#include "abi/ibverbs/use_count.h"
#include "transport/completion_counter.h"

namespace verbena::abi {

struct CompCntrObject : ibv_comp_cntr {
  static CompCntrObject& of(ibv_comp_cntr* counter) {
    return *static_cast<CompCntrObject*>(counter);
  }

  CompletionCounter counter;
  UseCount users;  // QPs it is attached to
};

// Deleted; kBusy and unchanged while it is attached to a QP.
[[nodiscard]] Status destroy(CompCntrObject& counter);

}  // namespace verbena::abi
