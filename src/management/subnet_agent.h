// The subnet management agent of a node: reads and writes its attributes as SMPs ask. IBTA Vol 1,
// 14.2.5 (attributes), 14.2.4 (M_Key), 14.2.6 (port states). A pure function of the node, the SMP
// and the time; it returns the changes of the port's link and for its users, which the subnet
// applies.
#pragma once

#include "management/node.h"
#include "management/smp.h"

namespace verbena::management {

// PortChanges: the changes of a channel adapter's port that its users are notified of.
struct PortChanges {
  bool state = false, lid = false, sm = false, p_keys = false, gids = false;
  bool client_reregister = false;
  [[nodiscard]] bool any() const {
    return state || lid || sm || p_keys || gids || client_reregister;
  }
};

struct SMPOutcome {
  enum class Answer : u8 {
    kNone,       // dropped
    kReply,      // the SMP has become its own answer
    kToManager,  // it is for a subnet manager at that port
  };
  enum class Link : u8 { kKeep, kRetrain, kDisable, kPoll };

  Answer answer = Answer::kReply;
  PortChanges changes;
  u8 port = 0;  // that `link` and `activated` are about
  Link link = Link::kKeep;
  bool wrote_forwarding = false;
  bool m_key_violation = false;  // trap 256 is due
};

// `in`: the port by which it came, or the one whose LID it was sent to; 0: a switch's own.
[[nodiscard]] SMPOutcome answer_smp(Node& node, u8 in, SMP smp, Time now);

}  // namespace verbena::management
