// TimeSpent: where the time of an operation or a job went, along its critical path: back from the
// step that ended last to the message that it waited for, to the step that sent that, and so on to
// the start. The parts add up to the whole time.
#pragma once

#include "base/time.h"

namespace verbena::jobs {

struct TimeSpent {
  Duration computing{};
  Duration nvlink{};    // messages within nodes
  Duration sending{};   // at the sender's NIC, of this message and those ahead of it there
  Duration distance{};  // what one packet needs for the way where nothing else is
  Duration waiting{};   // the rest between nodes: queues, pauses, slowed senders
  Duration overhead{};  // between a message's arrival and the next step
  Duration host{};      // between the GPU's memory and the NIC, on both sides (host_path/)

  [[nodiscard]] Duration sum() const {
    return computing + nvlink + sending + distance + waiting + overhead + host;
  }
};

}  // namespace verbena::jobs
