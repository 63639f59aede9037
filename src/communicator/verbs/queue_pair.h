// The states that an RC queue pair passes on its way to RTS. IBTA Vol 1, 10.3.1. `who` names the
// peer in the text of a failure.
#pragma once

#include <string>

#include "communicator/verbs/rail.h"

namespace verbena::coll {

[[nodiscard]] Expected<void> to_init(ibv_qp* qp, u8 port, const std::string& who);
[[nodiscard]] Expected<void> to_rtr(ibv_qp* qp, const Rail& rail, const QPAddress& remote,
                                    const std::string& who);
struct SendSettings {
  u32 psn = 0;
  u8 reads = 1;    // outstanding READ requests
  u8 timeout = 0;  // 4.096 us 2^timeout until an ACK is missed; seven retries follow
};
[[nodiscard]] Expected<void> to_rts(ibv_qp* qp, const SendSettings& settings,
                                    const std::string& who);

}  // namespace verbena::coll
