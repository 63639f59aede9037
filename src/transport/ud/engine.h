// UDEngine: the Unreliable Datagram transport of one QP, the GSI's QP 1 among them.
// IBTA Vol 1, 9.8.3; 13.5.1.
#pragma once

#include "transport/ud/requester.h"
#include "transport/ud/responder.h"
#include "transport/unreliable_engine.h"

namespace verbena {

class UDEngine final : public UnreliableEngine<UDRequester, UDResponder> {
 public:
  using UnreliableEngine::UnreliableEngine;
};

}  // namespace verbena
