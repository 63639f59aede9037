// The language of fault rules, as people write it in `verbena run --fault SPEC`, in files, and in
// calls of verbena.h:
//
//   SPEC      RULE [; RULE] ...          a new line separates rules too; # begins a comment
//   RULE      ACTION [PROBABILITY] [KEY=VALUE] ...
//   loss      [P%]                       lost
//   burst-loss [enter=P%] [leave=P%] [inside=P%] [outside=P%]     Gilbert-Elliott
//   reorder   [P%] [by=T]                late by up to T, others overtake it
//   duplicate [P%] [by=T]                a second copy comes within T
//   delay     by=T [jitter=T]            late, in order
//   corrupt   [P%] [bits=N] [icrc=bad|good]
//   rate      limit=R [queue=T]          R: 10Gbit, 100Mbit; what would wait longer than T is lost
//   mark      [P%]                       ECN congestion experienced
//   blackhole                            all is lost
//   flap      up=T down=T
//   rnr       [P%] [timer=CODE]          the request is answered with a RNR NAK
//   nak       [P%] code=sequence|invalid-request|remote-access|remote-operational
//   qp-error                             the QP goes to Error
//   cq-overrun
//   registration-error [P%]              ibv_reg_mr fails with ENOMEM
// and any of
//   dir=tx|rx  qp=N  peer=ADDRESS  opcode=NAME[|NAME]...  psn=A[-B]  message=A[-B]
//   nth=A[-B]  every=N  count=N  from=T  for=T
// T: 20us, 1.5ms, 2s, 300ns. N: decimal or 0x hexadecimal. NAME: send, write, read, read-request,
// read-response, atomic, ack, cnp, first, middle, last, only, or an OpCode as 0x04.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "faults/rule.h"

namespace verbena::faults {

// The error is one line: the rule, the mistake in it, and a suggestion.
[[nodiscard]] tl::expected<std::vector<Rule>, std::string> parse_rules(std::string_view spec);

}  // namespace verbena::faults
