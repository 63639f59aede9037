// MulticastTable: which QPs are attached to which multicast groups. IBTA Vol 1, 10.5 (multicast),
// 11.3.1 (attach, detach); A17.4.5.2: a RoCEv2 group is an IP multicast address, as a GID.
// Not on the data path but for find(): attaching and detaching may allocate.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "device/qp/queue_pair.h"

namespace verbena {

struct MulticastLimits {
  u32 groups = 0;        // with a QP attached
  u32 qps_of_group = 0;  // attached to one group
};

class MulticastTable {
 public:
  explicit MulticastTable(const MulticastLimits& limits) : limits_(limits) {}

  // kOk also when it is attached already: it still gets one copy of each message. kNoMemory: a
  // limit.
  [[nodiscard]] Status attach(QueuePair& qp, const GID& group);
  [[nodiscard]] Status detach(QueuePair& qp, const GID& group);  // kInvalidArgument: not attached
  // Returns a group that the QP is attached to, or nullopt.
  [[nodiscard]] std::optional<GID> group_of(const QueuePair& qp) const;

  // Returns the members in the order of attachment; empty if there are none. Valid until the next
  // attach() or detach().
  [[nodiscard]] std::span<QueuePair* const> find(const GID& group) const;

 private:
  struct Group {
    GID gid;
    std::vector<QueuePair*> qps;
  };
  [[nodiscard]] std::size_t place_of(const GID& group) const;
  [[nodiscard]] bool is_at(std::size_t place, const GID& group) const {
    return place < groups_.size() && groups_[place].gid == group;
  }

  MulticastLimits limits_;
  std::vector<Group> groups_;  // by GID
};

}  // namespace verbena
