// An acknowledgement that came with a request of the same QP, and before it: between processes of
// one host, one record may hold both packets (host/local/frame_ring.h). IBTA Vol 1, 9.7.5.1
#pragma once

#include "base/psn.h"
#include "wire/ib/aeth.h"
#include "wire/ib/bth.h"

namespace verbena {

struct Acknowledgement {
  static constexpr u32 kBytes = BTH::kSize + AETH::kSize + 4;  // of the packet: BTH .. ICRC
  PSN psn;
  AETH aeth;
};

}  // namespace verbena
