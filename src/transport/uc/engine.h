// UCEngine: the Unreliable Connection transport of one QP. IBTA Vol 1, 9.8.2.
#pragma once

#include "transport/uc/requester.h"
#include "transport/uc/responder.h"
#include "transport/unreliable_engine.h"

namespace verbena {

class UCEngine final : public UnreliableEngine<UCRequester, UCResponder> {
 public:
  using UnreliableEngine::UnreliableEngine;
};

}  // namespace verbena
